#pragma once

#include "kernels/both.h"
#include "kernels/ops/activated.h"
#include "kernels/ops/router.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Scores of n positions for a query, with a team (device/team.h): the sum over heads of weight *
/// relu(query * key). The query has `heads` times `dim` numbers, the key_of(p) of a position `dim`,
/// `weights` one per head.
template <class Team, class T, class KeyOf>
SHARDTOOL_BOTH inline void index_scores(const Team& team, const T* query, const T* weights,
                                        i64 heads, i64 dim, i64 n, const KeyOf& key_of, T* scores) {
  for (i64 h = 0; h < heads; ++h) {
    const auto add = [=, weight = weights[h]](i64 p, T product) {
      const T before = h == 0 ? T{} : scores[p];
      scores[p] = before + weight * activated(ActivationKind::kRelu, product);
    };
    team.multiply_rows(n, key_of, dim, query + h * dim, add);
  }
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

/// As gate_positions, with a team, whose lanes have written the scores before. Only one lane ranks
/// floats: models replay their choice on the host.
template <class Team, class T>
SHARDTOOL_BOTH inline void gate_together(const Team& team, T* scores, i64 n, i64 top_k) {
  if (team.is_first()) gate_positions(scores, n, top_k);
}
template <class Team>
SHARDTOOL_BOTH inline void gate_together(const Team& team, Field* scores, i64 n, i64 /*top_k*/) {
  team.for_each(n, [scores](i64 i) { gate_positions(scores + i, 1, 1); });
}

}  // namespace shardtool::kernels
