#pragma once

#include <vector>

#include "lib/engine/ops/apply.h"

namespace shardtool::engine {

/// The queries of an attention whose index chooses what each of them sees.
struct PositionChoice {
  i64 rows = 0;  ///< in sequences of `length`
  i64 length = 1;
  i64 top_k = 0;
  bool causal = true;
  i64 every = 1;  ///< so many positions are one to choose: an entry
};

/// The scores of every query's positions become 1 where they are chosen and 0 elsewhere, and what
/// was chosen is written down: of f64 only for queries whose choice rounding could have made
/// otherwise, so that the others' scores are proved by what they choose; of f32, whose rounding is
/// what one looks at, of all. A choice that is replayed counts instead of the scores. T is float or
/// double. O(rows * length * top_k).
template <class T>
void choose_positions(const PositionChoice& queries, const Choosing& choosing,
                      std::vector<T>& scores);

}  // namespace shardtool::engine
