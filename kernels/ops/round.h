#pragma once

#include <bit>
#include <cstdint>

#include "kernels/both.h"

namespace shardtool::kernels {

/// Rounds to bf16, to nearest even; NaN stays NaN.
SHARDTOOL_BOTH inline float rounded_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return x;
  const std::uint32_t even = bits >> 16 & 1;
  return std::bit_cast<float>((bits + 0x7fff + even) & 0xffff0000U);
}

}  // namespace shardtool::kernels
