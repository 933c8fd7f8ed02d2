#pragma once

#include "kernels/both.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Causal depthwise convolution of one feature at position t:
///
///     y = sum over j of weight[j] x[t - (taps - 1) + j]
///
/// Position p of the sequence is at x[p * stride]; `past` has the taps - 1 positions before the
/// first, null means zeros. O(taps).
template <class T>
SHARDTOOL_BOTH inline T convolved(const T* x, i64 stride, i64 t, const T* weight, i64 taps,
                                  const T* past) {
  T sum{};
  for (i64 j = 0; j < taps; ++j) {
    const i64 position = t - (taps - 1) + j;
    if (position >= 0) {
      sum += weight[j] * x[position * stride];
    } else if (past != nullptr) {
      sum += weight[j] * past[taps - 1 + position];
    }
  }
  return sum;
}

}  // namespace shardtool::kernels
