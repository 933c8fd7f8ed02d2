#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/infinity.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Mean of n values weighted by the softmax of their scores. Overwrites the scores.
template <class T>
SHARDTOOL_BOTH inline T pooled(const T* values, T* scores, i64 n) {
  T most = -kInfinity<T>, sum{}, mean{};
  for (i64 i = 0; i < n; ++i) most = scores[i] > most ? scores[i] : most;
  for (i64 i = 0; i < n; ++i) sum += scores[i] = std::exp(scores[i] - most);
  for (i64 i = 0; i < n; ++i) mean += values[i] * (scores[i] / sum);
  return mean;
}
SHARDTOOL_BOTH inline Field pooled(const Field* values, Field* scores, i64 n) {
  Field sum, weighed;
  for (i64 i = 0; i < n; ++i) {
    const Field weight = surrogate(Surrogate::kPool, scores[i]);
    sum += weight;
    weighed += values[i] * weight;
  }
  return weighed * surrogate(Surrogate::kNormaliser, sum);
}

}  // namespace shardtool::kernels
