#pragma once

#include "kernels/ops/activation.h"
#include "kernels/ops/surrogate.h"

namespace shardtool::kernels {

/// Applies a graph's activation, or its surrogate in the field.
template <class T>
SHARDTOOL_BOTH inline T activated(ActivationKind kind, T x) {
  return activate(kind, x);
}
SHARDTOOL_BOTH inline Field activated(ActivationKind kind, Field x) {
  return surrogate(
      static_cast<std::uint64_t>(Surrogate::kActivation) + static_cast<std::uint64_t>(kind), x);
}

}  // namespace shardtool::kernels
