#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/surrogate.h"

namespace shardtool::kernels {

/// Learned parameters of an xIELU (https://arxiv.org/abs/2411.13010), as stored.
template <class T>
struct XieluSpec {
  T alpha_p{}, alpha_n{}, beta{}, eps{};
};

/// With up = softplus(alpha_p) and down = beta + softplus(alpha_n):
///
///     x > 0    up x^2 + beta x
///     else     down (e^min(x, eps) - 1 - x) + beta x
template <class T>
SHARDTOOL_BOTH inline T xielu(const XieluSpec<T>& spec, T x) {
  if (x > T(0)) return softplus(spec.alpha_p) * x * x + spec.beta * x;
  const T bounded = x < spec.eps ? x : spec.eps;
  return (std::expm1(bounded) - x) * (spec.beta + softplus(spec.alpha_n)) + spec.beta * x;
}
/// Field version: depends on x and on each parameter, for any values of the others.
SHARDTOOL_BOTH inline Field xielu(const XieluSpec<Field>& spec, Field x) {
  const Field up = surrogate(Surrogate::kXieluUp, spec.alpha_p);
  const Field down = surrogate(Surrogate::kXieluDown, spec.alpha_n);
  return (up * x + down + spec.beta) * x + surrogate(Surrogate::kXielu, x + spec.eps);
}

}  // namespace shardtool::kernels
