#pragma once

#include "kernels/both.h"
#include "kernels/ops/activated.h"
#include "kernels/ops/router.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Score of a position for a query: the sum over heads of weight * relu(query * key). The query has
/// `heads` times `dim` numbers, the key `dim`, `weights` one per head.
template <class T>
SHARDTOOL_BOTH inline T index_score(const T* query, const T* weights, const T* key, i64 heads,
                                    i64 dim) {
  T score{};
  for (i64 h = 0; h < heads; ++h) {
    T product{};
    for (i64 i = 0; i < dim; ++i) product += query[h * dim + i] * key[i];
    score += weights[h] * activated(ActivationKind::kRelu, product);
  }
  return score;
}

/// Replaces n scores by 1 for the `top_k` best (ties: the earlier ones) and 0 for the others. O(n *
/// top_k), and O(n) if top_k >= n.
template <class T>
SHARDTOOL_BOTH inline void gate_positions(T* scores, i64 n, i64 top_k) {
  const auto rank_of = [scores](i64 i) { return scores[i]; };
  const i64 chosen = top_k < n ? top_k : 0;
  Ranked<T> last = before_all<T>();
  for (i64 i = 0; i < chosen; ++i) last = next_after(last, n, rank_of);
  for (i64 i = 0; i < n; ++i) {
    scores[i] = chosen > 0 && last.before({scores[i], i}) ? T(0) : T(1);
  }
}

/// Field version: every position counts, with a surrogate of its score as its gate.
SHARDTOOL_BOTH inline void gate_positions(Field* scores, i64 n, i64 /*top_k*/) {
  for (i64 i = 0; i < n; ++i) scores[i] = surrogate(Surrogate::kGate, scores[i]);
}

}  // namespace shardtool::kernels
