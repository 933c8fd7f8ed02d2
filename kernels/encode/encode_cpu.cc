#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/encode/encode.h"
#include "kernels/ops/round.h"

namespace shardtool::kernels {
namespace {

constexpr int kF16Digits = 10;  ///< fraction bits
constexpr int kF16Least = -14;  ///< exponent of the smallest normal number
constexpr int kF16Bias = 15;
constexpr std::uint32_t kF16Infinity = 0x7c00;
constexpr std::uint32_t kF16Quiet = 0x7e00;

std::uint16_t as_bf16(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded_to_bf16(x)) >> 16);
}

/// Scales to units of the last fraction bit, which a double holds exactly. A fraction that rounds
/// up to the next exponent carries into it.
std::uint32_t magnitude_as_f16(float x) {
  if (std::isnan(x)) return kF16Quiet;
  if (std::isinf(x)) return kF16Infinity;
  const int exponent = x == 0 ? kF16Least : std::max(std::ilogb(x), kF16Least);
  const double units = std::nearbyint(std::ldexp(static_cast<double>(x), kF16Digits - exponent));
  // The units of a normal number include its leading 1, which adds 1 to this exponent.
  const auto low = static_cast<std::uint32_t>(exponent + kF16Bias - 1) << kF16Digits;
  return std::min(low + static_cast<std::uint32_t>(units), kF16Infinity);
}

std::uint16_t as_f16(float x) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) >> 16 & 0x8000;
  return static_cast<std::uint16_t>(sign | magnitude_as_f16(std::fabs(x)));
}

template <class Encode>
void encode_16_bits(const float* values, i64 n, std::byte* elements, const Encode& encode) {
  for (i64 i = 0; i < n; ++i) {
    const std::uint16_t element = encode(values[i]);
    std::memcpy(elements + 2 * i, &element, sizeof element);
  }
}

}  // namespace

bool is_float_storage(Dtype dtype) {
  return dtype == Dtype::kBF16 || dtype == Dtype::kF16 || dtype == Dtype::kF32;
}

void from_floats(Dtype dtype, const float* values, i64 n, std::byte* elements) {
  assert(is_float_storage(dtype));
  if (dtype == Dtype::kBF16) return encode_16_bits(values, n, elements, as_bf16);
  if (dtype == Dtype::kF16) return encode_16_bits(values, n, elements, as_f16);
  if (n > 0) std::memcpy(elements, values, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace shardtool::kernels
