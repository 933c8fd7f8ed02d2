#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/both.h"
#include "kernels/ops/round.h"
#include "lib/base/checked.h"
#include "lib/base/dtype.h"

/// Encoding of one float, for host and GPU.
namespace shardtool::kernels {

SHARDTOOL_BOTH inline std::uint16_t as_bf16(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded_to_bf16(x)) >> 16);
}

/// Rounds to nearest even; overflow gives infinity, NaN the quiet NaN of its sign.
SHARDTOOL_BOTH inline std::uint16_t as_f16(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  constexpr std::uint32_t kOverflow = 0x477ff000U;  // 65520, half-way above the largest
  constexpr std::uint32_t kNormal = 0x38800000U;    // 2^-14
  constexpr std::uint32_t kTiny = 0x33000000U;      // 2^-25, half of the smallest
  constexpr int kDropped = 13;                      // fraction bits that f16 lacks
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t size = bits & 0x7fffffffU;
  std::uint32_t stored = 0;
  if (size > kInfinity) {
    stored = 0x7e00U;
  } else if (size >= kOverflow) {
    stored = 0x7c00U;
  } else if (size >= kNormal) {
    stored = (size + 0xfffU + (size >> kDropped & 1U) - 0x38000000U) >> kDropped;
  } else if (size > kTiny) {
    const std::uint32_t shift = 126 - (size >> 23);
    const std::uint32_t fraction = (size & 0x7fffffU) | 0x800000U;
    const std::uint32_t half = 1U << (shift - 1);
    const std::uint32_t even = fraction >> shift & 1U;
    stored = (fraction + half - 1 + even) >> shift;
  }
  return static_cast<std::uint16_t>(sign | stored);
}

/// from_floats as a work.
struct EncodeFloats {
  Dtype dtype = Dtype::kBF16;
  const float* values = nullptr;
  i64 n = 0;
  std::byte* elements = nullptr;

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    if (dtype == Dtype::kF32) {
      std::memcpy(elements + 4 * i, values + i, 4);
      return;
    }
    const std::uint16_t element = dtype == Dtype::kBF16 ? as_bf16(values[i]) : as_f16(values[i]);
    std::memcpy(elements + 2 * i, &element, 2);
  }
};

}  // namespace shardtool::kernels
