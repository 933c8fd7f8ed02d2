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

template <class T>
SHARDTOOL_BOTH inline T mean_of(T sum, i64 n) {
  return sum / static_cast<T>(n);
}
/// Exact.
SHARDTOOL_BOTH inline Field mean_of(Field sum, i64 n) {
  return sum * inverse(Field::from_signed(n));
}

/// Scales a row whose numbers are value_of(k), centred if the norm is.
template <class Team, class T, class ValueOf>
SHARDTOOL_BOTH inline void scale_row(const Team& team, const NormSpec& spec,
                                     const ValueOf& value_of, const T* weight, const T* bias, i64 n,
                                     T* y) {
  const T squares = team.template sum<T>(n, [value_of](i64 k) {
    const T value = value_of(k);
    return value * value;
  });
  const T factor = norm_factor(spec, squares, n);
  const auto scaled = [=, plus = spec.one_plus_weight](i64 k) {
    const T stored = weight == nullptr ? T{1} : weight[k];
    const T scale = plus ? T{1} + stored : stored;
    return value_of(k) * factor * scale + (bias == nullptr ? T{} : bias[k]);
  };
  team.write(n, scaled, y);
}

/// Normalises one row with a team (device/team.h). Null `weight` means factors of 1, null `bias`
/// means 0. For residues the factor is surrogate(sum of squares), and the mean is exact.
template <class Team, class T>
SHARDTOOL_BOTH inline void norm_row(const Team& team, const NormSpec& spec, const T* x,
                                    const T* weight, const T* bias, i64 n, T* y) {
  const auto value_of = [x](i64 k) { return x[k]; };
  if (spec.kind != NormKind::kLayer) return scale_row(team, spec, value_of, weight, bias, n, y);
  const T mean = mean_of(team.template sum<T>(n, value_of), n);
  scale_row(
      team, spec, [x, mean](i64 k) { return x[k] - mean; }, weight, bias, n, y);
}

}  // namespace shardtool::kernels
