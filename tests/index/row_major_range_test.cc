#include "lib/index/row_major_range.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/generators.h"

using namespace shardtool;

TEST_CASE("the boxes of a range are its elements in order, and few") {
  CHECK(rc::check("range [begin, end) of an array", [] {
    const Shape extents = *gen::shape();
    const i64 elements = element_count(extents).value();
    const i64 begin = *gen::between(0, elements);
    const i64 end = *gen::between(begin, elements);
    std::vector<i64> found;
    size_t boxes = 0;
    index::for_each_box_of_range(extents, begin, end, [&](const Shape& first, const Shape& sizes) {
      ++boxes;
      for (std::vector<i64> at : reference::tuples(sizes)) {
        for (size_t a = 0; a < at.size(); ++a) at[a] += first[a];
        found.push_back(reference::row_major(at, extents));
      }
    });
    std::vector<i64> expected;
    for (i64 element = begin; element < end; ++element) expected.push_back(element);
    RC_ASSERT(found == expected);
    RC_ASSERT(boxes < std::max<size_t>(2, 2 * extents.size()));
  }));
}

TEST_CASE("a range of a matrix is a part of a row, whole rows, and a part of a row") {
  std::vector<std::pair<Shape, Shape>> boxes;
  index::for_each_box_of_range({4, 5}, 3, 14, [&](const Shape& first, const Shape& sizes) {
    boxes.emplace_back(first, sizes);
  });
  CHECK(boxes ==
        std::vector<std::pair<Shape, Shape>>{{{0, 3}, {1, 2}}, {{1, 0}, {1, 5}}, {{2, 0}, {1, 4}}});
}
