#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Assigns each of `rows` a distinct one of `columns` with the maximum sum of weights: the
/// Hungarian method with shortest augmenting paths, O(rows^2 columns) and mostly far less.
/// weights[row * columns + column]; rows <= columns. Returns the column of every row.
std::vector<i64> best_assignment(i64 rows, i64 columns, std::span<const i64> weights);

/// Assigns greedily, largest weights first, for sizes at which the optimum is too expensive: O(n
/// log n) in the weights above their row's minimum.
std::vector<i64> greedy_assignment(i64 rows, i64 columns, std::span<const i64> weights);

/// Upper bound of any assignment's weight: the smaller of the sum of row maxima and the sum of
/// column maxima.
i64 assignment_bound(i64 rows, i64 columns, std::span<const i64> weights);

}  // namespace shardtool::plan
