#pragma once

#include "lib/index/axis_map.h"

namespace shardtool::index {

/// Part of a holder inside the section [begin, begin + size) of the global axis, as a map of the
/// section: result(l) = a(k) - begin, where k is the l-th local index of `a` with an image in the
/// section. Inverse of `concat`, except that padding is dropped. O(pieces).
AxisMap section_of(const AxisMap& a, i64 begin, i64 size);

}  // namespace shardtool::index
