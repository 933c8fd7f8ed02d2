#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "lib/api/plan_search.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/base/error.h"
#include "tests/api/planning/searched.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Searches in little memory, and with devices that are lost.
namespace shardtool::api {
namespace {

using searched::dense;
using searched::options_for;
using searched::with_experts;

TEST_CASE("the gain of memory is that of the same search without its limit") {
  CHECK(rc::check("memory", [] {
    SearchOptions options = options_for(*gen::between(0, 1) == 0 ? dense() : with_experts());
    options.concurrency = {4, 16};
    options.objective = *rc::gen::element(plan::Objective::kThroughput, plan::Objective::kUser,
                                          plan::Objective::kLatency);
    const SearchReport roomy = search_layouts(options);
    const auto& row = roomy.rows[static_cast<size_t>(*gen::between(0, std::ssize(roomy.rows) - 1))];
    options.plan.device.bytes = row.total + *gen::between(-1, 8) * row.per_sequence;
    if (*gen::between(0, 1) == 1) options.limits.ttft_us = row.offer.ttft_us;
    if (*gen::between(0, 1) == 1) options.limits.tpot_us = row.offer.tpot_us;
    const SearchReport tight = search_layouts(options);
    options.plan.device.bytes = options.plan.hardware->usable_bytes;
    const SearchReport best = search_layouts(options);
    RC_ASSERT(best.optimum.has_value());
    const auto memory =
        std::ranges::find(tight.bindings, std::string("memory"), &Binding::constraint);
    const bool binds = !tight.optimum || best.value > tight.value;
    RC_TAG(binds, tight.optimum.has_value());
    RC_ASSERT((memory != tight.bindings.end()) == binds);
    if (!binds) return;
    const double gain = tight.optimum ? (best.value - tight.value) / std::abs(tight.value) : 0;
    RC_ASSERT(std::abs(memory->gain - gain) <= 1e-9);
    RC_ASSERT(memory->layout == to_string(best.rows[*best.optimum].layout));
    RC_ASSERT(!memory->reason.empty());
  }));
}

TEST_CASE("a plan fits as many sequences as a search says, and few more") {
  CHECK(rc::check("places", [] {
    SearchOptions options = options_for(*gen::between(0, 1) == 0 ? dense() : with_experts());
    const std::vector<ServingRow> roomy = search_layouts(options).rows;
    const auto& chosen = roomy[static_cast<size_t>(*gen::between(0, std::ssize(roomy) - 1))];
    options.plan.device.bytes = chosen.total + *gen::between(0, 40) * chosen.per_sequence;
    for (const ServingRow& row : search_layouts(options).rows) {
      if (row.layout.dp > 1 || row.layout.ep > 1 || row.layout.expert_parallel) continue;
      PlanOptions plan = options.plan;
      plan.mapping.mesh =
          mesh::parse_mesh(fmt::format("pp={},tp={}", row.layout.pp, row.layout.tp));
      plan.workload.context = options.prompt_len + options.answer_len;
      plan.workload.batch = row.fits;
      RC_ASSERT(make_plan(plan).memory.fits == true);
      // A prompt in work takes the room of at most as many further sequences as it has tokens.
      plan.workload.batch = row.fits + options.prompt_len + 2;
      RC_ASSERT(make_plan(plan).memory.fits == false);
    }
  }));
}

TEST_CASE("more memory never makes the optimum worse") {
  SearchOptions options = options_for(dense());
  options.devices = {1, 2};
  options.concurrency = {64};
  const std::vector<ServingRow> roomy = search_layouts(options).rows;
  i64 capped = 0;
  CHECK(rc::check("memory and a limit of TPOT", [&] {
    const auto& row = roomy[static_cast<size_t>(*gen::between(0, std::ssize(roomy) - 1))];
    options.limits.tpot_us = *row.offer.tpot_us * static_cast<double>(*gen::between(50, 110)) / 100;
    std::optional<double> value;
    for (const i64 places : {1, 3, 20, 64}) {
      options.plan.device.bytes = row.total + (places - 1) * row.per_sequence;
      const SearchReport report = search_layouts(options);
      if (value) RC_ASSERT(report.optimum.has_value());
      if (value) RC_ASSERT(report.value >= *value * (1 - 1e-9));
      if (!report.optimum) continue;
      value = report.value;
      const ServingRow& best = report.rows[*report.optimum];
      if (!best.cap()) continue;
      ++capped;
      RC_ASSERT(*best.cap() == best.service.running);
      RC_ASSERT(best.service.queue_us > 0);
      RC_ASSERT(*best.offer.tpot_us <= *options.limits.tpot_us);
    }
  }));
  CHECK(capped > 20);
}

/// Plans a model, and searches for layouts and ways to train, in the same memory.
std::array<std::optional<Error>, 3> errors_in(const DeviceBudget& device) {
  SearchOptions serving = options_for(dense());
  serving.plan.device = device;
  TrainSearchOptions training;
  training.plan = serving.plan;
  training.devices = {1};
  training.sequence = training.batch = 8;
  return {testing::error_of([&] { make_plan(serving.plan); }),
          testing::error_of([&] { search_layouts(serving); }),
          testing::error_of([&] { search_training(training); })};
}

TEST_CASE(
    "plan and searches take the same budgets, and no other leaves a device less than nothing") {
  constexpr i64 kMost = std::numeric_limits<i64>::max();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const double fraction : {kNone, -0.5, 0.0, 0.01, 0.5, 1.0, 1.5}) {
    for (const i64 bytes : {i64{1} << 30, kMost - 1, kMost}) {
      for (const i64 overhead : {i64{0}, i64{1} << 29, kMost}) {
        CAPTURE(fraction);
        CAPTURE(bytes);
        CAPTURE(overhead);
        const DeviceBudget device{bytes, fraction, overhead};
        const bool is_fraction = fraction > 0 && fraction <= 1;
        if (is_fraction) CHECK(device.usable_bytes() > 0);
        if (is_fraction) CHECK(device.usable_bytes() <= bytes);
        const bool is_possible = is_fraction && overhead < device.usable_bytes();
        for (const auto& error : errors_in(device)) {
          CHECK(error.has_value() != is_possible);
          if (error) CHECK(error->code() == ErrorCode::kUsage);
        }
      }
    }
  }
}

TEST_CASE("a layout falls back to its other replicas, or to a smaller layout that fits") {
  SearchOptions options = options_for(dense());
  options.devices = {4};
  options.survive = 1;
  const SearchReport report = search_layouts(options);
  const auto fallback = [&](const ServingLayout& layout) {
    const auto row = std::ranges::find(report.rows, layout, &ServingRow::layout);
    REQUIRE(row != report.rows.end());
    return *row->fallback;
  };
  CHECK(report.refused.empty());
  CHECK(fallback({4, 1, 1, 1}) == ServingLayout{3, 1, 1, 1});
  CHECK(fallback({2, 1, 1, 2}) == ServingLayout{1, 1, 1, 2});
  CHECK(fallback({1, 1, 1, 4}) == ServingLayout{1, 1, 1, 3});
  CHECK(fallback({1, 2, 1, 2}) == ServingLayout{1, 1, 1, 2});
}

TEST_CASE("what a smaller layout cannot hold does not survive") {
  SearchOptions options = options_for(dense());
  options.devices = {2};
  options.pinned.tp = 2;
  options.survive = 1;
  const auto refused = [&] {
    const SearchReport report = search_layouts(options);
    CHECK(report.rows.empty());
    REQUIRE(report.refused.size() == 1);
    CHECK(report.refused.front().constraint == "survival");
    return report.refused.front().reason;
  };
  CHECK(refused() == "no layout on 1 device left holds 8 clients");
  options.pinned.tp.reset();
  SearchOptions one = options;
  one.devices = {1};
  one.survive = 0;
  const ServingRow whole = search_layouts(one).rows.front();
  options.plan.device.bytes = whole.total + 7 * whole.per_sequence;
  CHECK(search_layouts(options).refused.empty());
  options.plan.device.bytes -= 1;
  CHECK(search_layouts(options).rows.empty());
  options.plan.device.bytes += 1;
  options.survive = 2;
  CHECK(search_layouts(options).rows.empty());
}

TEST_CASE("the devices left serve the rate of an open load") {
  SearchOptions options = options_for(dense());
  options.concurrency.clear();
  options.devices = {1};
  options.request_rate = 1e6;
  const ServingRow one = [&] {
    SearchOptions closed = options;
    closed.request_rate.reset();
    closed.concurrency = {1};
    return search_layouts(closed).rows.front();
  }();
  options.plan.device.bytes = one.total + 3 * one.per_sequence;
  const std::string reason = search_layouts(options).refused.front().reason;
  double most = 0;
  REQUIRE(std::sscanf(reason.c_str(), "at most %lf", &most) == 1);
  options.devices = {2};
  options.survive = 1;
  options.request_rate = most;
  CHECK_FALSE(search_layouts(options).rows.empty());
  options.request_rate = 1.01 * most;
  CHECK(search_layouts(options).rows.empty());
}

}  // namespace
}  // namespace shardtool::api
