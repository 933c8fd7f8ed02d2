#include "lib/index/holder_set.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using index::AxisMap;
using index::HolderSet;
using index::Region;

TEST_CASE("holders are factored by axis, and replicas share a pick") {
  CHECK(rc::check("H1, H2, region, replicas and firsts", [] {
    const Shape shape = *gen::shape();
    std::vector<Region> regions;
    const i64 count = *gen::between(0, 8);
    for (i64 h = 0; h < count; ++h) {
      Region region;
      for (const i64 n : shape)
        region.push_back(AxisMap::slice(n, {0, *gen::between(0, std::min<i64>(n, 2))}));
      regions.push_back(std::move(region));
    }
    const HolderSet set = HolderSet::of(shape, regions);
    RC_ASSERT(set.size() == static_cast<int>(regions.size()));
    for (int axis = 0; axis < set.rank(); ++axis) {
      const auto maps = set.maps(axis);
      for (size_t m = 0; m < maps.size(); ++m) {
        RC_ASSERT(maps[m].global_size() == shape[static_cast<size_t>(axis)]);  // H1
        RC_ASSERT(std::find(maps.begin(), maps.begin() + static_cast<std::ptrdiff_t>(m),
                            maps[m]) == maps.begin() + static_cast<std::ptrdiff_t>(m));  // H1
      }
    }
    for (int h = 0; h < set.size(); ++h) {
      RC_ASSERT(set.region(h) == regions[static_cast<size_t>(h)]);  // H2
      std::vector<int> replicas;
      for (int other = 0; other < set.size(); ++other) {
        if (regions[static_cast<size_t>(other)] == set.region(h)) replicas.push_back(other);
      }
      const auto found = set.replicas(h);
      RC_ASSERT(std::vector<int>(found.begin(), found.end()) == replicas);
      const auto firsts = set.firsts();
      RC_ASSERT((std::ranges::count(firsts, h) == (replicas.front() == h ? 1 : 0)));
      RC_ASSERT(std::ranges::is_sorted(firsts));
    }
  }));
}

TEST_CASE("a region of another shape is refused") {
  HolderSet set({4, 4});
  CHECK_ERROR(kInternal, set.add(index::whole_region({4, 5})));
  CHECK_ERROR(kInternal, set.add(index::whole_region({4})));
}

TEST_CASE("the whole tensor has one holder, also when it is a scalar") {
  CHECK(HolderSet::whole({2, 3}).region(0) == index::whole_region({2, 3}));
  const HolderSet scalar = HolderSet::whole({});
  CHECK(scalar.size() == 1);
  CHECK(scalar.replicas(0).size() == 1);
}
