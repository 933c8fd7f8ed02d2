#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Divides every line of n numbers, `stride` apart, by its sum + eps; line l begins at m + l *
/// step.
template <class T>
SHARDTOOL_BOTH inline void divide_lines(T* m, i64 n, i64 step, i64 stride, T eps) {
  for (i64 l = 0; l < n; ++l) {
    T sum{};
    for (i64 i = 0; i < n; ++i) sum += m[l * step + i * stride];
    for (i64 i = 0; i < n; ++i) m[l * step + i * stride] /= sum + eps;
  }
}

/// Sinkhorn normalisation of a row-major n x n matrix in place: softmax of every row, + eps, then
/// columns divided by their sums + eps; each further round divides rows, then columns.
template <class T>
SHARDTOOL_BOTH inline void balance(T* m, i64 n, i64 rounds, T eps) {
  for (i64 r = 0; r < n; ++r) {
    T* const row = m + r * n;
    T most = row[0], sum{};
    for (i64 c = 1; c < n; ++c) most = row[c] > most ? row[c] : most;
    for (i64 c = 0; c < n; ++c) sum += row[c] = std::exp(row[c] - most);
    for (i64 c = 0; c < n; ++c) row[c] = row[c] / sum + eps;
  }
  divide_lines(m, n, 1, n, eps);
  for (i64 round = 1; round < rounds; ++round) {
    divide_lines(m, n, n, 1, eps);
    divide_lines(m, n, 1, n, eps);
  }
}

/// Field version: always one round, since each further one would multiply the degree by nine.
SHARDTOOL_BOTH inline void balance(Field* m, i64 n, i64 /*rounds*/, Field /*eps*/) {
  const auto times = [m, n](Surrogate kind, i64 step, i64 stride) {
    for (i64 l = 0; l < n; ++l) {
      Field sum;
      for (i64 i = 0; i < n; ++i) sum += m[l * step + i * stride];
      const Field factor = surrogate(kind, sum);
      for (i64 i = 0; i < n; ++i) m[l * step + i * stride] *= factor;
    }
  };
  for (i64 i = 0; i < n * n; ++i) m[i] = surrogate(Surrogate::kBalance, m[i]);
  times(Surrogate::kBalancedRows, n, 1);
  times(Surrogate::kNormaliser, 1, n);
}

}  // namespace shardtool::kernels
