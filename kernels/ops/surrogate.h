#pragma once

#include <cstdint>

#include "kernels/field/field.h"

namespace shardtool::kernels {

/// What takes a nonlinear function's place in the field. A proof that two runs compute the same
/// needs no real softmax: it needs one and the same function on both sides that is neither linear
/// nor symmetric in its arguments, and whose degree is low, so that different arguments give
/// different values (Schwartz-Zippel) but for a chance of degree / p.
enum class Surrogate : std::uint64_t {
  kNorm,
  kScore,
  kNormaliser,
  kSink,
  kSoftcap,
  kGate,
  kCorrectedGate,
  kPairedGate,
  kClamp,
  kActivation,  ///< the kinds of activations count from here, up to kStep
  kStep = 64,
  kRate,
  kDecay,
  kOwnSize,
  kOtherSize,
  kDeviation,
  kXielu,
  kXieluUp,
  kXieluDown,
  kFade,
  kPool,
  kBalance,
  kBalancedRows,
};

/// x^3 + a x + b, a and b fixed and different for every kind.
SHARDTOOL_BOTH constexpr Field surrogate(std::uint64_t kind, Field x) {
  constexpr std::uint64_t kConstants = 0x5eed0f5a11d7001;
  const Field a = field_random(kConstants, 2 * kind);
  const Field b = field_random(kConstants, 2 * kind + 1);
  return (x * x + a) * x + b;
}
SHARDTOOL_BOTH constexpr Field surrogate(Surrogate kind, Field x) {
  return surrogate(static_cast<std::uint64_t>(kind), x);
}

}  // namespace shardtool::kernels
