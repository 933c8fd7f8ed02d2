#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/engine/diagnosis/axis_words.h"

namespace shardtool::engine {

/// The content of a device's axis compared with its layout: the global line (row, column, matrix)
/// that every local line holds, -1 for a line that the tensor lacks.
struct HeldOrder {
  i64 rank = 0;
  index::AxisMap expected;
  std::vector<i64> held;
  std::map<i64, index::AxisMap> others;  ///< the axis on other devices, by layout
};

/// Returns true if enough lines are known to describe the order.
bool is_known(const HeldOrder& order);

/// Describes the order as the rest of a sentence that begins with the rank:
///     "head 3 holds head 5"          "gate holds up"          "holds the part of rank 0"
///     "rows are shifted by +1"       "row 31 holds row 30"
///     "holds rows [0, 64) instead of [0, 32) [64, 96)"
/// Returns nullopt if too few lines are known, or all are in their places.
std::optional<std::string> describe(const HeldOrder& order, const AxisWords& words);

}  // namespace shardtool::engine
