#pragma once

#include <optional>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/index/holder_set.h"

namespace shardtool::index {

/// Returns the first box of the tensor without a holder, as one interval per axis: its begin is the
/// first such element in row-major order. Nullopt if every element is in some holder.
///
/// Sweeps along an axis, and along the next one with the holders of each segment only. n disjoint
/// boxes of a matrix take O(n sqrt(n) log n), as long as a line crosses sqrt(n) of them.
std::optional<std::vector<Interval>> first_gap(const HolderSet& holders);

/// True if every element of the tensor is in some holder.
bool covers(const HolderSet& holders);

}  // namespace shardtool::index
