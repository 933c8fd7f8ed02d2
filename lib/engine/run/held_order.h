#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/engine/diagnosis/axis_words.h"

namespace shardtool::engine {

/// What a device has of an axis beside what it is to have: which global line (row, column, matrix)
/// every local one holds, -1 where it is none of the tensor's.
struct HeldOrder {
  i64 rank = 0;
  index::AxisMap expected;
  std::vector<i64> held;
  std::map<i64, index::AxisMap> others;  ///< what other devices are to have of the axis
};

/// Whether enough lines are known for the order to be told.
bool is_known(const HeldOrder& order);

/// What stands where, as the rest of a sentence that begins with the rank:
///     "head 3 holds head 5"          "gate holds up"          "holds the part of rank 0"
///     "rows are shifted by +1"       "row 31 holds row 30"
///     "holds rows [0, 64) instead of [0, 32) [64, 96)"
/// Nothing when too few lines are known, or all are in their places.
std::optional<std::string> describe(const HeldOrder& order, const AxisWords& words);

}  // namespace shardtool::engine
