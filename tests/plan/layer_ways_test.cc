#include "lib/plan/layer_ways.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/generators.h"

namespace shardtool::plan {
namespace {

using Menus = std::vector<std::vector<LayerWay>>;

/// Tries every combination; infinity if none fits.
double least_time(const Menus& menus, i64 budget, size_t layer = 0) {
  if (budget < 0) return std::numeric_limits<double>::infinity();
  if (layer == menus.size()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const LayerWay& way : menus[layer])
    least = std::min(least, way.us + least_time(menus, budget - way.bytes, layer + 1));
  return least;
}

/// Up to six layers of up to five ways; in half of the cases all layers are alike.
Menus some_menus() {
  const auto layers = static_cast<size_t>(*gen::between(0, 6));
  const bool alike = *gen::between(0, 1) == 1;
  Menus menus;
  for (size_t i = 0; i < layers; ++i) {
    if (alike && i > 0) {
      menus.push_back(menus.front());
      continue;
    }
    std::vector<LayerWay> ways(static_cast<size_t>(*gen::between(1, 5)));
    for (LayerWay& way : ways)
      way = {*gen::between(0, 40), static_cast<double>(*gen::between(0, 40))};
    menus.push_back(ways);
  }
  return menus;
}

TEST_CASE("the fastest ways are those of all combinations") {
  CHECK(rc::check("layers and a budget", [] {
    const Menus menus = some_menus();
    const i64 budget = *gen::between(0, 120);
    const double least = least_time(menus, budget);
    const auto found = fastest_ways(menus, budget);
    RC_ASSERT(found.has_value() == std::isfinite(least));
    if (!found) return;
    RC_ASSERT(found->us == least);
    i64 bytes = 0;
    double us = 0;
    for (size_t i = 0; i < menus.size(); ++i) {
      bytes += menus[i][found->ways[i]].bytes;
      us += menus[i][found->ways[i]].us;
    }
    RC_ASSERT(bytes == found->bytes);
    RC_ASSERT(us == found->us);
    RC_ASSERT(bytes <= budget);
  }));
}

/// The same ways at up to four moments; at each a layer has its bytes up to three times.
std::vector<Menus> some_moments() {
  std::vector<Menus> moments(static_cast<size_t>(*gen::between(1, 4)), some_menus());
  for (Menus& menus : moments) {
    const i64 least = &menus == &moments.front() ? 1 : 0;
    for (auto& ways : menus) {
      const i64 times = *gen::between(least, 3);
      for (LayerWay& way : ways) way.bytes *= times;
    }
  }
  return moments;
}

/// Tries every combination; infinity if none fits at all moments.
double least_time_at(const std::vector<Menus>& moments, const std::vector<i64>& rooms,
                     size_t layer = 0) {
  if (std::ranges::min(rooms) < 0) return std::numeric_limits<double>::infinity();
  if (layer == moments.front().size()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t w = 0; w < moments.front()[layer].size(); ++w) {
    std::vector<i64> left = rooms;
    for (size_t m = 0; m < left.size(); ++m) left[m] -= moments[m][layer][w].bytes;
    least = std::min(least, moments.front()[layer][w].us + least_time_at(moments, left, layer + 1));
  }
  return least;
}

TEST_CASE("ways that fit at all moments are found if there are any") {
  CHECK(rc::check("layers, moments and a budget", [] {
    const std::vector<Menus> moments = some_moments();
    const i64 budget = *gen::between(0, 240);
    const double least = least_time_at(moments, std::vector<i64>(moments.size(), budget));
    const auto found = fitting_ways(moments, budget);
    RC_ASSERT(found.has_value() == std::isfinite(least));
    if (!found) return;
    i64 most = 0;
    for (const Menus& menus : moments) {
      i64 bytes = 0;
      for (size_t i = 0; i < menus.size(); ++i) bytes += menus[i][found->ways[i]].bytes;
      most = std::max(most, bytes);
    }
    RC_ASSERT(found->bytes == most);
    RC_ASSERT(most <= budget);
    RC_ASSERT(found->us >= least);
    if (moments.size() == 1) RC_ASSERT(found->us == least);
  }));
}

TEST_CASE("a choice that fits at the first moment alone gives way to one that fits at all") {
  // The first layer has its bytes twice at the second moment, the second layer none.
  const std::vector<Menus> moments{{{{10, 1}, {2, 9}}, {{10, 1}, {2, 5}}},
                                   {{{20, 1}, {4, 9}}, {{0, 1}, {0, 5}}}};
  using Ways = std::vector<size_t>;
  CHECK(fitting_ways(moments, 20)->ways == Ways{0, 0});
  CHECK(fitting_ways(moments, 20)->bytes == 20);
  CHECK(fastest_ways(moments.front(), 19)->ways == Ways{0, 1});  // 20 bytes at the second moment
  CHECK(fitting_ways(moments, 19)->ways == Ways{1, 1});
  CHECK(fitting_ways(moments, 4)->bytes == 4);
  CHECK_FALSE(fitting_ways(moments, 3));
  // 30 bytes are 2 too many, and 2 bytes less than 10 are no way.
  const std::vector<Menus> one_layer{{{{10, 1}, {9, 2}}}, {{{30, 1}, {27, 2}}}};
  CHECK(fitting_ways(one_layer, 28)->ways == Ways{1});
  CHECK(fitting_ways(one_layer, 28)->bytes == 27);
}

TEST_CASE("126 layers with 128 ways each keep a budget that is nearly used up") {
  Menus menus(126);
  std::uint32_t state = 1;
  const auto random = [&state] { return (state = state * 1664525 + 1013904223) >> 8; };
  i64 least = 0;
  i64 most = 0;
  for (auto& ways : menus) {
    i64 small = std::numeric_limits<i64>::max();
    i64 large = 0;
    for (int w = 0; w < 128; ++w) {
      ways.push_back({1 + random() % 100'000'000, 1.0 + random() % 100'000});
      small = std::min(small, ways.back().bytes);
      large = std::max(large, ways.back().bytes);
    }
    least += small;
    most += large;
  }
  CHECK_FALSE(fastest_ways(menus, least - 1));
  const i64 budget = least + (most - least) / 5;
  const auto found = fastest_ways(menus, budget);
  REQUIRE(found);
  CHECK(found->bytes <= budget);
  CHECK(found->bytes > budget - budget / 500);
  double free = 0;
  for (const auto& ways : menus) free += std::ranges::min(ways, {}, &LayerWay::us).us;
  CHECK(fastest_ways(menus, most)->us == doctest::Approx(free));
  CHECK(found->us > free);
}

}  // namespace
}  // namespace shardtool::plan
