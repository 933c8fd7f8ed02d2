#include "lib/api/transfer/sources/boxes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/generators.h"

namespace shardtool::api {
namespace {

using layout::Layout;

/// Global indices of a holder's elements in its local order; kPadding for padding.
reference::Indices held_elements(const index::Region& region) {
  std::vector<reference::Indices> axes;
  for (const index::AxisMap& map : region) axes.push_back(reference::indices(map));
  reference::Indices held;
  for (const auto& local : reference::tuples(index::local_shape(region))) {
    std::vector<i64> global;
    for (size_t a = 0; a < axes.size(); ++a) {
      global.push_back(axes[a][static_cast<size_t>(local[a])]);
    }
    const bool is_padding = std::ranges::count(global, reference::kPadding) > 0;
    held.push_back(is_padding ? reference::kPadding
                              : reference::row_major(global, index::global_shape(region)));
  }
  return held;
}

/// Elements of the box of this shape at `begin`, or nothing if it leaves the tensor.
reference::Indices box_elements(const Shape& begin, const Shape& extents, const Shape& shape) {
  reference::Indices elements;
  for (const auto& local : reference::tuples(extents)) {
    std::vector<i64> global;
    for (size_t a = 0; a < begin.size(); ++a) global.push_back(begin[a] + local[a]);
    for (size_t a = 0; a < begin.size(); ++a) {
      if (global[a] >= shape[a]) return {};
    }
    elements.push_back(reference::row_major(global, shape));
  }
  return elements;
}

/// Tries every place of a box of the region's extents.
bool is_box(const index::Region& region) {
  const Shape extents = index::local_shape(region);
  const Shape shape = index::global_shape(region);
  const reference::Indices held = held_elements(region);
  if (held.empty()) return true;
  return std::ranges::any_of(reference::tuples(shape), [&](const Shape& begin) {
    return box_elements(begin, extents, shape) == held;
  });
}

/// True if two parts begin at the same element and differ in their extents.
bool begin_alike(const Layout& layout) {
  std::map<i64, Shape> extents;
  for (int h = 0; h < layout.holders().size(); ++h) {
    const reference::Indices held = held_elements(layout.holders().region(h));
    if (held.empty()) continue;
    const Shape shape = layout.holders().local_shape(h);
    if (extents.emplace(held.front(), shape).first->second != shape) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a layout has offsets exactly if all parts are boxes, and they put the tensor together") {
  int boxes = 0;
  CHECK(rc::check("why_not_boxes, box_begin", [&] {
    const Layout layout = *gen::layout(*gen::shape());
    // Without elements the oracle sees no padding.
    if (element_count(layout.shape()) == 0) return;
    bool are_boxes = !begin_alike(layout);
    for (int h = 0; h < layout.holders().size() && are_boxes; ++h) {
      are_boxes = is_box(layout.holders().region(h));
    }
    RC_ASSERT(why_not_boxes(layout.holders(), layout.ranks()).has_value() != are_boxes);
    if (!are_boxes) return;
    ++boxes;
    std::set<i64> placed;
    for (int h = 0; h < layout.holders().size(); ++h) {
      const Shape begin = box_begin(layout.holders(), h);
      const Shape extents = layout.holders().local_shape(h);
      for (size_t a = 0; a < begin.size(); ++a) {
        RC_ASSERT(begin[a] + extents[a] <= layout.shape()[a]);
      }
      const auto elements = box_elements(begin, extents, layout.shape());
      RC_ASSERT(elements == held_elements(layout.holders().region(h)));
      placed.insert(elements.begin(), elements.end());
    }
    RC_ASSERT(std::ssize(placed) == element_count(layout.shape()));
  }));
  CHECK(boxes > 0);
}

TEST_CASE("the reason names a rank and its axis, or two parts that begin alike") {
  const auto reason = [](const Shape& shape, const std::vector<index::Region>& regions) {
    std::vector<i64> ranks;
    for (size_t r = 0; r < regions.size(); ++r) ranks.push_back(std::ssize(ranks) + 4);
    return why_not_boxes(index::HolderSet::of(shape, regions), ranks);
  };
  const index::AxisMap whole = index::AxisMap::identity(8);
  const index::AxisMap front = index::AxisMap::slice(8, {0, 4});
  const index::AxisMap back = index::AxisMap::slice(8, {4, 8});
  const index::AxisMap none = index::AxisMap::slice(8, {0, 0});
  const index::AxisMap two(4, 8, {{0, 0, 2}, {2, 4, 2}});
  const index::AxisMap swapped(8, 8, {{0, 4, 4}, {4, 0, 4}});
  CHECK(reason({8}, {{front}, {back}, {none}, {front}}) == std::nullopt);
  CHECK(reason({}, {{}, {}}) == std::nullopt);
  CHECK(reason({8, 8}, {{whole, front}, {whole, two}}) == "on rank 5, axis 1 has 2 intervals");
  CHECK(reason({8}, {{swapped}}) == "on rank 4, axis 0 has 2 intervals");
  CHECK(reason({8}, {{front}, {pad(back, 6)}}) == "on rank 5, axis 0 has padding");
  CHECK(reason({8}, {{front}, {whole}}) ==
        "the shards of ranks 4 and 5 begin at one index, but differ in size");
  CHECK(box_begin(index::HolderSet::of({8, 8}, std::vector<index::Region>{{back, none}}), 0) ==
        Shape{4, 8});
}

}  // namespace shardtool::api
