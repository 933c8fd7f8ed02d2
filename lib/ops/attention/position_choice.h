#pragma once

#include <vector>

#include "lib/ops/body.h"

namespace shardtool::ops {

/// The queries of an attention with an index, which chooses the positions that each query sees.
struct PositionChoice {
  i64 rows = 0;  ///< in sequences of `length` rows
  i64 length = 1;
  i64 top_k = 0;
  bool causal = true;
  i64 every = 1;  ///< positions per entry
};

/// Replaces the scores of every query's positions by 1 if chosen and 0 otherwise, and records the
/// choice. In f64 it records only choices that rounding could change; the other scores are then
/// verified by their choice. In f32, which measures rounding, it records all. A replayed choice has
/// precedence over the scores. T is float or double. O(rows * length * top_k).
template <class T>
void choose_positions(const PositionChoice& queries, const Choosing& choosing,
                      std::vector<T>& scores);

}  // namespace shardtool::ops
