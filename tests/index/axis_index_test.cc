#include "lib/index/axis_index.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/generators.h"

using namespace shardtool;
using index::AxisIndex;
using index::AxisMap;

TEST_CASE("the segments are the union of the images, cut where any map begins or ends a piece") {
  CHECK(rc::check("S1, S2 and every claim, index by index", [] {
    const i64 n = *gen::between(0, 16);
    std::vector<AxisMap> maps;
    const i64 count = *gen::between(0, 4);
    for (i64 m = 0; m < count; ++m) maps.push_back(*gen::axis_map(*gen::between(0, 12), n));
    std::set<std::tuple<i64, int, i64>> expected;  // global index, map, local index
    for (size_t m = 0; m < maps.size(); ++m) {
      for (i64 local = 0; local < maps[m].local_size(); ++local) {
        if (const auto at = maps[m](local)) expected.insert({*at, static_cast<int>(m), local});
      }
    }
    std::set<std::tuple<i64, int, i64>> found;
    i64 next = 0;
    const AxisIndex covered(maps);
    for (const AxisIndex::Segment& segment : covered.segments()) {
      RC_ASSERT(next <= segment.begin);
      RC_ASSERT(segment.begin < segment.end);
      RC_ASSERT(!segment.claims.empty());
      next = segment.end;
      int last_map = -1;
      for (const index::Claim& claim : segment.claims) {
        RC_ASSERT(last_map < claim.map);
        last_map = claim.map;
        for (i64 i = 0; i < segment.end - segment.begin; ++i) {
          RC_ASSERT(found.insert({segment.begin + i, claim.map, claim.local + i}).second);
        }
      }
    }
    RC_ASSERT(found == expected);
  }));
}

TEST_CASE("two maps that overlap share the segment between their cuts") {
  const std::vector<AxisMap> maps{AxisMap::slice(10, {0, 6}), AxisMap::slice(10, {4, 9})};
  const AxisIndex covered(maps);
  const auto segments = covered.segments();
  REQUIRE(segments.size() == 3);
  CHECK(segments[1].begin == 4);
  CHECK(segments[1].end == 6);
  REQUIRE(segments[1].claims.size() == 2);
  CHECK(segments[1].claims[0].local == 4);
  CHECK(segments[1].claims[1].local == 0);
  CHECK(segments[2].claims.size() == 1);
  CHECK(segments[2].claims[0].local == 2);
}
