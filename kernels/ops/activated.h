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

/// Clamps x to [-limit, limit].
template <class T>
SHARDTOOL_BOTH inline T limited(T limit, T x) {
  return clamp(x, -limit, limit);
}
SHARDTOOL_BOTH inline Field limited(Field limit, Field x) {
  return surrogate(Surrogate::kClamp, x + limit);
}

/// Returns the smaller of x and the limit.
template <class T>
SHARDTOOL_BOTH inline T at_most(T limit, T x) {
  return x > limit ? limit : x;
}
SHARDTOOL_BOTH inline Field at_most(Field limit, Field x) {
  return limited(limit, x);
}

/// gpt-oss' function of gate and up.
template <class T>
SHARDTOOL_BOTH inline T activated_pair(T gate, T up) {
  return gpt_oss_glu(gate, up);
}
SHARDTOOL_BOTH inline Field activated_pair(Field gate, Field up) {
  return surrogate(Surrogate::kPairedGate, gate) * (up + Field{1});
}

}  // namespace shardtool::kernels
