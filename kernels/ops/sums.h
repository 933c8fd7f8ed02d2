#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

/// Functions of the sum and the sum of squares of n numbers.
namespace shardtool::kernels {

/// Factor that gives n numbers the mean square of n others; `own` and `other` are sums of squares.
/// The own mean square is at least `least`.
template <class T>
SHARDTOOL_BOTH inline T resize_factor(T own, T other, i64 n, double least) {
  const T count = static_cast<T>(n);
  const T mean = own / count;
  const T counted = mean < static_cast<T>(least) ? static_cast<T>(least) : mean;
  return std::sqrt(other / count) / std::sqrt(counted);
}
SHARDTOOL_BOTH inline Field resize_factor(Field own, Field other, i64 /*n*/, double /*least*/) {
  return surrogate(Surrogate::kOwnSize, own) * surrogate(Surrogate::kOtherSize, other);
}

/// mean + quantile * deviation. A variance below 0 from rounding counts as 0.
template <class T>
SHARDTOOL_BOTH inline T cutoff_of(T sum, T squares, i64 n, T quantile) {
  const T mean = sum / static_cast<T>(n);
  const T variance = squares / static_cast<T>(n) - mean * mean;
  return mean + quantile * std::sqrt(variance < T(0) ? T(0) : variance);
}
/// Field version with an exact mean.
SHARDTOOL_BOTH inline Field cutoff_of(Field sum, Field squares, i64 n, Field quantile) {
  const Field part = inverse(Field::from_signed(n));
  const Field mean = sum * part;
  return mean + quantile * surrogate(Surrogate::kDeviation, squares * part - mean * mean);
}

/// Quantile of the standard normal distribution for a share within (0, 1), by bisection. NaN for
/// other shares.
inline double normal_quantile(double share) {
  constexpr double kFarthest = 40;  // no double is closer to 0 or 1
  constexpr int kHalvings = 100;
  constexpr double kHalfRoot = 0.70710678118654752440;
  if (!(share > 0 && share < 1)) return std::nan("");
  double least = -kFarthest, most = kFarthest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (least + most);
    (0.5 * std::erfc(-middle * kHalfRoot) < share ? least : most) = middle;
  }
  return 0.5 * (least + most);
}

/// sum of factors[i * factor_stride] * x[i * stride] over n streams.
template <class T>
SHARDTOOL_BOTH inline T mixed(const T* x, i64 stride, const T* factors, i64 n,
                              i64 factor_stride = 1) {
  T sum{};
  for (i64 i = 0; i < n; ++i) sum += factors[i * factor_stride] * x[i * stride];
  return sum;
}

}  // namespace shardtool::kernels
