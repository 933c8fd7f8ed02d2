#include "lib/index/join.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lib/index/row_major_range.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using index::AxisCell;
using index::AxisIndex;
using index::AxisMap;
using index::Claim;
using index::HolderJoin;
using index::HolderSet;
using index::Region;

namespace {

std::vector<AxisMap> maps_over(i64 n) {
  std::vector<AxisMap> maps;
  const i64 count = *gen::between(0, 4);
  for (i64 m = 0; m < count; ++m) maps.push_back(*gen::axis_map(*gen::between(0, 12), n));
  return maps;
}

/// Claims on one index, by definition.
std::set<std::pair<int, i64>> claims_on(const std::vector<AxisMap>& maps, i64 global) {
  std::set<std::pair<int, i64>> claims;
  for (size_t m = 0; m < maps.size(); ++m) {
    for (i64 local = 0; local < maps[m].local_size(); ++local) {
      if (maps[m](local) == global) claims.insert({static_cast<int>(m), local});
    }
  }
  return claims;
}

std::set<std::pair<int, i64>> claims_in(const AxisIndex::Segment* segment, i64 global) {
  std::set<std::pair<int, i64>> at;
  if (segment == nullptr) return at;
  for (const Claim& claim : segment->claims)
    at.insert({claim.map, claim.local + global - segment->begin});
  return at;
}

/// Random holders of a tensor: neither complete nor disjoint, some of them replicas.
std::vector<Region> any_regions(const Shape& shape) {
  std::vector<Region> regions;
  const i64 count = *gen::between(0, 4);
  for (i64 h = 0; h < count; ++h) {
    if (!regions.empty() && *gen::between(0, 3) == 0) {
      regions.push_back(regions.back());
      continue;
    }
    Region region;
    for (const i64 n : shape) region.push_back(*gen::axis_map(*gen::between(0, 6), n));
    regions.push_back(std::move(region));
  }
  return regions;
}

/// Local position of the element `tuple` in a holder, or nullopt.
std::optional<std::vector<i64>> find(const Region& region, const std::vector<i64>& tuple) {
  std::vector<i64> local;
  for (size_t a = 0; a < region.size(); ++a) {
    const auto at = inverse(region[a])(tuple[a]);
    if (!at) return std::nullopt;
    local.push_back(*at);
  }
  return local;
}

std::vector<i64> moved(std::vector<i64> origin, const std::vector<i64>& by) {
  for (size_t a = 0; a < origin.size(); ++a) origin[a] += by[a];
  return origin;
}

}  // namespace

TEST_CASE("the cells of an axis are what destinations want, with every claim on both sides") {
  CHECK(rc::check("join_axis == index by index", [] {
    const i64 n = *gen::between(0, 14);
    const auto sources = maps_over(n);
    const auto destinations = maps_over(n);
    std::set<i64> covered;
    i64 next = 0;
    const AxisIndex source_axis(sources);
    const AxisIndex destination_axis(destinations);
    for (const AxisCell& cell : join_axis(source_axis, destination_axis)) {
      RC_ASSERT(cell.size > 0);
      RC_ASSERT(next <= cell.begin);
      next = cell.begin + cell.size;
      RC_ASSERT(cell.destination != nullptr);
      for (i64 i = cell.begin; i < next; ++i) {
        covered.insert(i);
        RC_ASSERT(claims_in(cell.source, i) == claims_on(sources, i));
        RC_ASSERT(claims_in(cell.destination, i) == claims_on(destinations, i));
      }
    }
    for (i64 i = 0; i < n; ++i) {
      RC_ASSERT(covered.count(i) == (claims_on(destinations, i).empty() ? 0U : 1U));
    }
  }));
}

TEST_CASE("two partitions of p and q pieces have at most p + q - 1 cells") {
  CHECK(rc::check("the size of a join", [] {
    const i64 n = *gen::between(1, 60);
    const auto parts = [n](i64 count) {
      std::vector<AxisMap> maps;
      for (i64 k = 0; k < count; ++k) {
        maps.push_back(AxisMap::slice(n, layout::part_of(n, count, k, layout::kBalanced)));
      }
      return AxisIndex(maps);
    };
    const i64 p = *gen::between(1, n);
    const i64 q = *gen::between(1, n);
    const AxisIndex from = parts(p);
    const AxisIndex to = parts(q);
    RC_ASSERT(static_cast<i64>(join_axis(from, to).size()) <= p + q - 1);
  }));
}

TEST_CASE("every wanted element of any holders is in exactly one box, with the right source") {
  CHECK(rc::check("HolderJoin == element by element", [] {
    const Shape shape = *gen::shape();
    const auto src = any_regions(shape);
    const auto dst = any_regions(shape);
    const HolderSet sources = HolderSet::of(shape, src);
    const HolderSet destinations = HolderSet::of(shape, dst);
    const HolderJoin join(sources, destinations);
    std::map<std::pair<int, std::vector<i64>>, int> times_written;
    join.for_each_box([&](HolderJoin::Box box) {
      std::vector<i64> origin;
      for (const HolderJoin::Cell* cell : box) origin.push_back(cell->begin);
      const HolderJoin::Located source = join.source_of(box);
      const auto wanted_by = join.destinations_of(box);
      for (const auto& step : reference::tuples(index::sizes(box))) {
        const auto element = moved(origin, step);
        for (const Region& region : src)
          RC_ASSERT((!source.holders.empty() || !find(region, element)));
        for (const int holder : source.holders) {
          RC_ASSERT(find(src[static_cast<size_t>(holder)], element) == moved(source.local, step));
        }
        for (const auto& wanted : wanted_by) {
          for (const int holder : wanted.holders) {
            RC_ASSERT(find(dst[static_cast<size_t>(holder)], element) == moved(wanted.local, step));
            ++times_written[{holder, moved(wanted.local, step)}];
          }
        }
      }
    });
    i64 wanted = 0;
    for (const Region& region : dst) wanted += image_size(region);
    RC_ASSERT(static_cast<i64>(times_written.size()) == wanted);
    for (const auto& [where, times] : times_written) RC_ASSERT(times == 1);
  }));
}

TEST_CASE("n ranges of a row-major matrix meet the whole matrix in at most 3 n boxes") {
  CHECK(rc::check("boxes grow with the ranges", [] {
    const Shape shape{*gen::between(1, 9), *gen::between(1, 9)};
    const i64 all = shape[0] * shape[1];
    std::set<i64> cuts{0, all};
    const i64 n_cuts = *gen::between(0, 12);
    for (i64 n = 0; n < n_cuts; ++n) cuts.insert(*gen::between(0, all));
    HolderSet ranges(shape);
    for (auto begin = cuts.begin(), end = std::next(begin); end != cuts.end(); ++begin, ++end) {
      index::for_each_box_of_range(shape, *begin, *end, [&](const Shape& at, const Shape& size) {
        Region region;
        for (size_t a = 0; a < 2; ++a)
          region.push_back(AxisMap::slice(shape[a], {at[a], at[a] + size[a]}));
        ranges.add(region);
      });
    }
    const HolderSet whole = HolderSet::whole(shape);
    const auto boxes = [](const HolderSet& from, const HolderSet& to) {
      i64 count = 0;
      HolderJoin(from, to).for_each_box([&](HolderJoin::Box) { ++count; });
      return count;
    };
    const i64 n = std::ssize(cuts) - 1;
    RC_ASSERT(ranges.size() <= 3 * n);
    // A row that two ranges share cuts none of the ranges that are whole rows.
    RC_ASSERT(boxes(ranges, whole) == ranges.size());
    RC_ASSERT(boxes(whole, ranges) == ranges.size());
  }));
}

TEST_CASE("holders that alternate on an axis share the cells inside") {
  constexpr i64 kRows = 1000;
  constexpr i64 kColumns = 6;
  HolderSet strided({kRows, kColumns});
  for (i64 k = 0; k < 4; ++k) {
    std::vector<index::Piece> pieces;
    for (i64 row = k / 2; row < kRows; row += 2) pieces.push_back({row / 2, row, 1});
    strided.add(
        {AxisMap(kRows / 2, kRows, pieces), AxisMap::slice(kColumns, {k % 2 * 3, k % 2 * 3 + 3})});
  }
  const HolderSet whole = HolderSet::whole({kRows, kColumns});
  const HolderJoin join(whole, strided);
  CHECK(join.cells(0).size() == kRows);
  CHECK(join.cells(1).size() == 4);
  i64 boxes = 0;
  join.for_each_box([&](HolderJoin::Box) { ++boxes; });
  CHECK(boxes == 2 * kRows);
}

TEST_CASE("shards that overlap in too many ways are refused, in bounded memory") {
  constexpr i64 kShards = 10000;
  HolderSet overlapping({2 * kShards});
  for (i64 k = 0; k < kShards; ++k)
    overlapping.add({AxisMap::slice(2 * kShards, {k, k + kShards})});
  CHECK_ERROR(kLimit, AxisIndex(overlapping.maps(0)));
  CHECK_ERROR(kLimit, HolderJoin(overlapping, HolderSet::whole({2 * kShards})));
}

TEST_CASE("shards that overlap on two axes are refused, also if each axis alone is within limits") {
  constexpr i64 kShards = 1000;
  HolderSet overlapping({2 * kShards, 2 * kShards});
  for (i64 k = 0; k < kShards; ++k) {
    const AxisMap part = AxisMap::slice(2 * kShards, {k, k + kShards});
    overlapping.add({part, part});
  }
  CHECK(AxisIndex(overlapping.maps(0)).segments().size() == 2 * kShards - 1);
  CHECK_ERROR(kLimit, HolderJoin(overlapping, HolderSet::whole({2 * kShards, 2 * kShards})));
}

TEST_CASE("a scalar is one box that every holder has") {
  const HolderSet one = HolderSet::whole({});
  const HolderJoin join(one, one);
  int boxes = 0;
  join.for_each_box([&](HolderJoin::Box box) {
    ++boxes;
    CHECK(box.empty());
    CHECK(join.source_of(box).holders.size() == 1);
    CHECK(join.destinations_of(box).size() == 1);
  });
  CHECK(boxes == 1);
}

TEST_CASE("an empty tensor has no boxes") {
  const HolderSet empty = HolderSet::whole({3, 0});
  int boxes = 0;
  HolderJoin(empty, empty).for_each_box([&](HolderJoin::Box) { ++boxes; });
  CHECK(boxes == 0);
}

TEST_CASE("tensors of different shapes are not joined") {
  CHECK_ERROR(kInternal, HolderJoin(HolderSet::whole({4}), HolderSet::whole({5})));
}
