#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Gives each of `rows` one of `columns` of its own so that the sum of weights is as large as it
/// can be: the Hungarian method with shortest augmenting paths, O(rows^2 columns) and mostly far
/// less. weights[row * columns + column]; rows <= columns. Returns the column of every row.
std::vector<i64> best_assignment(i64 rows, i64 columns, std::span<const i64> weights);

/// The same by taking the largest weights first, for numbers where the best is too dear:
/// O(n log n) in the weights above their row's least.
std::vector<i64> greedy_assignment(i64 rows, i64 columns, std::span<const i64> weights);

/// No assignment weighs more: the lesser of the sums of every row's and of every column's largest.
i64 assignment_bound(i64 rows, i64 columns, std::span<const i64> weights);

}  // namespace shardtool::plan
