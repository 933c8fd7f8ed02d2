#pragma once

#include <functional>

#include "lib/base/shape.h"

namespace shardtool::index {

/// Calls visit(first, sizes) for boxes that together are the elements [begin, end) of a row-major
/// array with these extents, in their order. There are at most 2 * axes - 1 of them:
///
///     [3, 14) of [4, 5]     . . . x x      first row from 3
///                           x x x x x      whole rows
///                           x x x x .      last row to 4
///
/// Requires 0 <= begin <= end <= number of elements.
void for_each_box_of_range(
    const Shape& extents, i64 begin, i64 end,
    const std::function<void(const Shape& first, const Shape& sizes)>& visit);

}  // namespace shardtool::index
