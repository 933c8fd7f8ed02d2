#pragma once

#include <cstdint>

#include "kernels/field/field.h"

namespace shardtool::kernels {

/// Replacements of nonlinear functions in the field. A proof that two runs compute the same value
/// needs no real softmax, only one function on both sides that is neither linear nor symmetric in
/// its arguments and has a low degree: different arguments then give different values
/// (Schwartz-Zippel) except with probability degree / p.
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
  kActivation,  ///< first of the activation kinds, which end before kStep
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

/// x^3 + a x + b, with fixed a and b for every kind.
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
