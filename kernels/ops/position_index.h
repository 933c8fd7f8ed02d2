#pragma once

#include "kernels/both.h"
#include "kernels/ops/activated.h"
#include "kernels/ops/router.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// How well a position suits a query, which has `heads` times `dim` numbers, as the key has `dim`
/// and `weights` one for each head: the sum of weight * relu(query * key).
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

/// n scores become 1 where they are among the `top_k` best, of equals the earlier ones, and 0
/// elsewhere. O(n * top_k), and O(n) where all are.
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

/// Of residues every position counts, by a function of its score, as every expert does.
SHARDTOOL_BOTH inline void gate_positions(Field* scores, i64 n, i64 /*top_k*/) {
  for (i64 i = 0; i < n; ++i) scores[i] = surrogate(Surrogate::kGate, scores[i]);
}

}  // namespace shardtool::kernels
