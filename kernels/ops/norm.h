#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Norm over n numbers:
///
///     rms     x / sqrt(mean(x^2) + eps) * w          layer   (x - mean) / sqrt(var + eps) * w + b
///     l2      x / sqrt(sum(x^2) + eps) * w
enum class NormKind { kRms, kLayer, kL2 };

struct NormSpec {
  NormKind kind = NormKind::kRms;
  double eps = 0;
  bool one_plus_weight = false;
};

/// Factor of a row of n numbers; `squares` is the sum of their (centred) squares.
template <class T>
SHARDTOOL_BOTH inline T norm_factor(const NormSpec& spec, T squares, i64 n) {
  const T divisor = spec.kind == NormKind::kL2 ? T(1) : static_cast<T>(n);
  return T(1) / std::sqrt(squares / divisor + static_cast<T>(spec.eps));
}
SHARDTOOL_BOTH inline Field norm_factor(const NormSpec& /*spec*/, Field squares, i64 /*n*/) {
  return surrogate(Surrogate::kNorm, squares);
}

/// Normalises one row. Null `weight` means factors of 1, null `bias` means 0.
template <class T>
SHARDTOOL_BOTH inline void norm_row(const NormSpec& spec, const T* x, const T* weight,
                                    const T* bias, i64 n, T* y) {
  T mean = 0;
  if (spec.kind == NormKind::kLayer) {
    for (i64 i = 0; i < n; ++i) mean += x[i];
    mean /= static_cast<T>(n);
  }
  T squares = 0;
  for (i64 i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const T factor = norm_factor(spec, squares, n);
  for (i64 i = 0; i < n; ++i) {
    const T stored = weight == nullptr ? T(1) : weight[i];
    const T scale = spec.one_plus_weight ? T(1) + stored : stored;
    y[i] = (x[i] - mean) * factor * scale + (bias == nullptr ? T(0) : bias[i]);
  }
}

/// Field version: the factor is surrogate(sum of squares), the mean is exact.
SHARDTOOL_BOTH inline void norm_row(const NormSpec& spec, const Field* x, const Field* weight,
                                    const Field* bias, i64 n, Field* y) {
  Field mean;
  if (spec.kind == NormKind::kLayer) {
    for (i64 i = 0; i < n; ++i) mean += x[i];
    mean *= inverse(Field::from_signed(n));
  }
  Field squares;
  for (i64 i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const Field factor = norm_factor(spec, squares, n);
  for (i64 i = 0; i < n; ++i) {
    const Field stored = weight == nullptr ? Field{1} : weight[i];
    const Field scale = spec.one_plus_weight ? Field{1} + stored : stored;
    y[i] = (x[i] - mean) * factor * scale + (bias == nullptr ? Field{} : bias[i]);
  }
}

}  // namespace shardtool::kernels
