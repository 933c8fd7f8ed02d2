#pragma once

#include <vector>

#include "lib/ops/body.h"

namespace shardtool::ops {

/// The queries of an attention whose index chooses the positions that each sees.
struct PositionChoice {
  i64 rows = 0;  ///< in sequences of `length`
  i64 length = 1;
  i64 top_k = 0;
  bool causal = true;
  i64 every = 1;  ///< positions of one entry to choose
};

/// Replaces the scores of every query's positions by 1 if they are chosen and 0 otherwise, and
/// records the choice: in f64 only for queries whose choice rounding could change, so that other
/// scores are proved by their choice; in f32, which measures rounding, for all queries. A replayed
/// choice takes precedence over the scores. T is float or double. O(rows * length * top_k).
template <class T>
void choose_positions(const PositionChoice& queries, const Choosing& choosing,
                      std::vector<T>& scores);

}  // namespace shardtool::ops
