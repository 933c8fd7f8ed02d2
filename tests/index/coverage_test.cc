#include "lib/index/coverage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/generators.h"

using namespace shardtool;
using index::AxisMap;
using index::HolderSet;
using index::Interval;
using index::Region;

namespace {

/// Random holders of a tensor: neither complete nor disjoint, some of them replicas.
std::vector<Region> any_holders(const Shape& shape) {
  std::vector<Region> regions;
  const i64 count = *gen::between(0, 6);
  for (i64 h = 0; h < count; ++h) {
    if (!regions.empty() && *gen::between(0, 3) == 0) {
      regions.push_back(regions.back());
      continue;
    }
    Region region;
    for (const i64 n : shape) region.push_back(*gen::axis_map(*gen::between(0, 8), n));
    regions.push_back(std::move(region));
  }
  return regions;
}

/// Adds a holder of an interval of each axis.
void add_box(HolderSet& holders, const std::vector<Interval>& box) {
  Region region;
  for (size_t axis = 0; axis < box.size(); ++axis) {
    region.push_back(AxisMap::slice(holders.shape()[axis], box[axis]));
  }
  holders.add(region);
}

/// Small pieces on the diagonal of a tensor with six axes, which have 64^6 boxes or more.
std::vector<Region> on_diagonal(const Shape& shape) {
  std::vector<Region> regions;
  for (i64 at = 0; at < shape[0]; at += 2) {
    regions.emplace_back();
    for (const i64 n : shape) regions.back().push_back(AxisMap::slice(n, {at, at + 1}));
  }
  return regions;
}

/// Elements in some holder, by definition.
std::set<std::vector<i64>> held_elements(const std::vector<Region>& regions) {
  std::set<std::vector<i64>> held;
  for (const Region& region : regions) {
    std::set<std::vector<i64>> of_one{{}};
    for (const AxisMap& map : region) {
      std::set<std::vector<i64>> longer;
      for (const auto& tuple : of_one) {
        for (i64 local = 0; local < map.local_size(); ++local) {
          const auto global = map(local);
          if (!global) continue;
          std::vector<i64> next = tuple;
          next.push_back(*global);
          longer.insert(std::move(next));
        }
      }
      of_one = std::move(longer);
    }
    held.insert(of_one.begin(), of_one.end());
  }
  return held;
}

}  // namespace

TEST_CASE("holders cover a tensor when every element is in one of them, and else a gap is told") {
  CHECK(rc::check("first_gap == element by element", [] {
    const Shape shape = *gen::shape();
    const auto regions = any_holders(shape);
    const auto held = held_elements(regions);
    const HolderSet holders = HolderSet::of(shape, regions);
    const auto gap = first_gap(holders);
    RC_ASSERT(index::covers(holders) == !gap);
    std::vector<std::vector<i64>> lost;
    for (const auto& element : reference::tuples(shape)) {
      if (!held.contains(element)) lost.push_back(element);
    }
    RC_ASSERT(gap.has_value() == !lost.empty());
    if (!gap) return;
    std::vector<i64> origin, sizes;
    for (const Interval& axis : *gap) {
      origin.push_back(axis.begin);
      sizes.push_back(axis.size());
    }
    RC_ASSERT(origin == *std::ranges::min_element(lost));
    for (const auto& step : reference::tuples(sizes)) {
      std::vector<i64> element = origin;
      for (size_t axis = 0; axis < step.size(); ++axis) element[axis] += step[axis];
      RC_ASSERT(!held.contains(element));
    }
  }));
}

TEST_CASE("a scalar without a holder is a gap without axes, and an empty tensor has none") {
  CHECK(first_gap(HolderSet(Shape{})) == std::vector<Interval>{});
  CHECK_FALSE(first_gap(HolderSet::whole({})));
  CHECK_FALSE(first_gap(HolderSet(Shape{3, 0})));
}

TEST_CASE("pieces that are too few, or leave a hole at the begin, are told from a cover at once") {
  const Shape shape(6, 64);
  auto regions = on_diagonal(shape);
  CHECK_FALSE(index::covers(HolderSet::of(shape, regions)));
  for (const i64 begin : {1, 2}) {  // together they have more elements than the tensor
    regions.emplace_back();
    for (const i64 n : shape) regions.back().push_back(AxisMap::slice(n, {begin, n}));
  }
  CHECK_FALSE(index::covers(HolderSet::of(shape, regions)));
}

TEST_CASE("boxes that overlap at random, and ranges of rows, are told from a cover at once") {
  const i64 side = 2000;
  HolderSet tiles({side, side});  // every line crosses hundreds of them
  const i64 step = 50;
  for (i64 row = 0; row < side; row += step) {
    for (i64 column = 0; column < side; column += step) {
      const i64 before = (row * 7 + column * 3) % 600, behind = (row * 5 + column) % 600;
      add_box(tiles, {{std::max<i64>(0, row - before), std::min(side, row + step + behind)},
                      {std::max<i64>(0, column - behind), std::min(side, column + step + before)}});
    }
  }
  CHECK(index::covers(tiles));
  HolderSet ranges({side, side});  // of an even cut of all elements: up to three boxes each
  for (i64 row = 0; row + 2 < side; row += 2) {
    const i64 from = row % 997, to = (row + 2) % 997;
    if (from > 0) add_box(ranges, {{row, row + 1}, {from, side}});
    add_box(ranges, {{row + (from > 0 ? 1 : 0), row + 2}, {0, side}});
    add_box(ranges, {{row + 2, row + 3}, {0, to}});
  }
  CHECK(first_gap(ranges) == std::vector<Interval>{{side - 2, side - 1}, {(side - 2) % 997, side}});
}
