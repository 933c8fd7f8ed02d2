#include "lib/index/region.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/generators.h"

using namespace shardtool;
using index::AxisMap;
using index::Region;

TEST_CASE("a region has the extents and the image of the product of its axes") {
  const Region region{AxisMap(5, 10, {{0, 0, 2}, {2, 6, 2}}), AxisMap::slice(8, {2, 5})};
  CHECK(local_shape(region) == Shape{5, 3});
  CHECK(global_shape(region) == Shape{10, 8});
  CHECK(image_size(region) == 12);
  CHECK(to_string(region) == "[0, 2) [6, 8) pad 1 x [2, 5)");
}

TEST_CASE("a scalar is held whole by a region without axes") {
  CHECK(index::whole_region({}).empty());
  CHECK(image_size(Region{}) == 1);
  CHECK(to_string(Region{}) == "scalar");
}

TEST_CASE("the whole region is the identity on every axis") {
  const Region region = index::whole_region({3, 0, 2});
  CHECK(region == Region{AxisMap::identity(3), AxisMap::identity(0), AxisMap::identity(2)});
  CHECK(image_size(region) == 0);
}

TEST_CASE("a flattened region maps every element in row-major order") {
  CHECK(rc::check("against the maps, index by index", [] {
    const Region region{*gen::axis_map(), *gen::axis_map(), *gen::axis_map()};
    const AxisMap elements = flattened(region);
    const Shape local = index::local_shape(region);
    const Shape global = index::global_shape(region);
    RC_ASSERT(elements.local_size() == local[0] * local[1] * local[2]);
    for (i64 i = 0; i < elements.local_size(); ++i) {
      const auto x = region[0](i / (local[1] * local[2])), y = region[1](i / local[2] % local[1]),
                 z = region[2](i % local[2]);
      const auto expected =
          x && y && z ? std::optional((*x * global[1] + *y) * global[2] + *z) : std::nullopt;
      RC_ASSERT(elements(i) == expected);
    }
  }));
  CHECK(flattened(Region{}) == AxisMap::identity(1));
}

TEST_CASE("the placed boxes of a region are its translations, each element once") {
  CHECK(rc::check("against the maps, index by index", [] {
    const Region region{*gen::axis_map(), *gen::axis_map()};
    std::set<std::pair<i64, i64>> seen;
    for (const index::PlacedBox& box : placed_boxes(region)) {
      for (i64 i = 0; i < box.sizes[0]; ++i) {
        for (i64 j = 0; j < box.sizes[1]; ++j) {
          RC_ASSERT(region[0](box.local[0] + i) == box.global[0] + i);
          RC_ASSERT(region[1](box.local[1] + j) == box.global[1] + j);
          RC_ASSERT(seen.insert({box.local[0] + i, box.local[1] + j}).second);
        }
      }
    }
    RC_ASSERT(static_cast<i64>(seen.size()) == image_size(region));
  }));
  CHECK(placed_boxes(Region{}) == std::vector<index::PlacedBox>{{}});
}
