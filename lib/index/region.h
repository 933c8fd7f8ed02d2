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

/// Formats as "[0, 192) [640, 832) x [0, 4096)": axes separated by " x "; "scalar" without axes.
std::string to_string(const Region& region);

}  // namespace shardtool::index
