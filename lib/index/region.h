#pragma once

#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/axis_map.h"

namespace shardtool::index {

/// Part of a tensor that one holder has: the product of one AxisMap per axis. A scalar has no axes
/// and is held whole.
using Region = std::vector<AxisMap>;

/// Local extents of the holder's tensor.
Shape local_shape(const Region& region);
/// Extents of the whole tensor.
Shape global_shape(const Region& region);
/// Number of global elements that the holder has, without padding.
i64 image_size(const Region& region);
/// Region of the whole tensor.
Region whole_region(const Shape& shape);

/// Map of all elements in row-major order. Throws kLimit when a size overflows.
AxisMap flattened(const Region& region);

/// Box of elements that a holder has as one translation: its begin in the holder's array and in the
/// whole tensor.
struct PlacedBox {
  Shape local;
  Shape global;
  Shape sizes;

  bool operator==(const PlacedBox&) const = default;
};
/// Boxes of a region: the product of its axes' pieces, last axis fastest. They are disjoint and
/// cover what is not padding. A scalar has one box without axes.
std::vector<PlacedBox> placed_boxes(const Region& region);

/// Formats as "[0, 192) [640, 832) x [0, 4096)": axes separated by " x "; "scalar" without axes.
std::string to_string(const Region& region);

}  // namespace shardtool::index
