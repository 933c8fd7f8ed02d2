#pragma once

#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/axis_map.h"

namespace shardtool::index {

/// What one holder has of a tensor: the product of one AxisMap per axis. A scalar has no axes and
/// is held whole.
using Region = std::vector<AxisMap>;

/// The local extents of the holder's tensor.
Shape local_shape(const Region& region);
/// The extents of the whole tensor.
Shape global_shape(const Region& region);
/// The number of global elements that the holder has (padding excluded).
i64 image_size(const Region& region);
/// A holder of everything.
Region whole_region(const Shape& shape);

/// "[0, 192) [640, 832) x [0, 4096)": axes separated by " x "; "scalar" without axes.
std::string to_string(const Region& region);

}  // namespace shardtool::index
