#include "lib/index/region.h"

#include <utility>

namespace shardtool::index {

Shape local_shape(const Region& region) {
  Shape shape;
  for (const AxisMap& map : region) shape.push_back(map.local_size());
  return shape;
}

Shape global_shape(const Region& region) {
  Shape shape;
  for (const AxisMap& map : region) shape.push_back(map.global_size());
  return shape;
}

i64 image_size(const Region& region) {
  i64 count = 1;
  for (const AxisMap& map : region) count *= map.image_size();
  return count;
}

Region whole_region(const Shape& shape) {
  Region region;
  for (const i64 extent : shape) region.push_back(AxisMap::identity(extent));
  return region;
}

AxisMap flattened(const Region& region) {
  AxisMap elements = AxisMap::identity(1);
  for (auto axis = region.rbegin(); axis != region.rend(); ++axis)
    elements = product(*axis, elements);
  return elements;
}

std::vector<PlacedBox> placed_boxes(const Region& region) {
  std::vector<PlacedBox> boxes(1);
  for (const AxisMap& map : region) {
    std::vector<PlacedBox> longer;
    for (const PlacedBox& box : boxes) {
      for (const Piece& piece : map.pieces()) {
        PlacedBox& next = longer.emplace_back(box);
        next.local.push_back(piece.local);
        next.global.push_back(piece.global);
        next.sizes.push_back(piece.size);
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

std::string to_string(const Region& region) {
  if (region.empty()) return "scalar";
  std::string text;
  for (const AxisMap& map : region) {
    if (!text.empty()) text += " x ";
    text += to_string(map);
  }
  return text;
}

}  // namespace shardtool::index
