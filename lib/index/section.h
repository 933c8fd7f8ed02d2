#pragma once

#include "lib/index/axis_map.h"

namespace shardtool::index {

/// What a holder has of the section [begin, begin + size) of the global axis, as a map of the
/// section: result(l) = a(k) - begin, where k is the l-th local index of `a` whose image lies in
/// the section. The `concat` of sections side by side undone, but for padding, which is left out.
/// O(pieces).
AxisMap section_of(const AxisMap& a, i64 begin, i64 size);

}  // namespace shardtool::index
