#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/both.h"
#include "kernels/decode/decode.h"
#include "lib/base/dtype.h"

/// Decoding of a single stored element, for code that runs on host and GPU (see decode.h).
namespace shardtool::kernels {

/// Returns stored element i. On a GPU `elements` must be aligned to the element size.
template <class Stored>
SHARDTOOL_BOTH inline Stored element(const std::byte* elements, i64 i) {
  const std::byte* at = elements + i * static_cast<i64>(sizeof(Stored));
  Stored value;
#ifdef __CUDA_ARCH__
  std::memcpy(&value, __builtin_assume_aligned(at, sizeof(Stored)), sizeof value);
#else
  std::memcpy(&value, at, sizeof value);
#endif
  return value;
}

/// A floating-point format by its field widths: sign, exponent, mantissa.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_infinity = true;  ///< the largest exponent encodes infinity and NaN
  bool is_fnuz = false;      ///< NaN is encoded as negative zero only
};

/// Format of F16 or of an 8-bit float dtype; requires one of them.
SHARDTOOL_BOTH constexpr FloatFormat small_format(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF8E5M2:
      return {5, 2, 15};
    case Dtype::kF8E4M3:
      return {4, 3, 7, false};
    case Dtype::kF8E5M2Fnuz:
      return {5, 2, 16, false, true};
    case Dtype::kF8E4M3Fnuz:
      return {4, 3, 8, false, true};
    default:
      return {5, 10, 15};
  }
}

/// 2^n for a normal double.
SHARDTOOL_BOTH constexpr double exact_power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

SHARDTOOL_BOTH constexpr double value_of(std::uint32_t bits, FloatFormat format) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> width & 1) != 0;
  const std::uint32_t magnitude = bits & ((1U << width) - 1);
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t most_mantissa = (1U << format.mantissa_bits) - 1;
  const bool is_largest = exponent == (1 << format.exponent_bits) - 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (format.is_fnuz && negative && magnitude == 0) return kNan;
  if (format.has_infinity && is_largest) {
    if (mantissa != 0) return kNan;
    return negative ? -kInfinite : kInfinite;
  }
  const bool is_e4m3_nan = !format.has_infinity && !format.is_fnuz && is_largest;
  if (is_e4m3_nan && mantissa == most_mantissa) return kNan;
  const std::uint32_t leading = exponent == 0 ? 0 : 1U << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  const double value = static_cast<double>(leading | mantissa) * exact_power_of_two(power);
  return negative ? -value : value;
}

/// Value of an E8M0: 2^(bits - 127).
SHARDTOOL_BOTH constexpr double scale_value(std::uint8_t bits) {
  return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : exact_power_of_two(bits - 127);
}

/// Converts a bf16 to float.
SHARDTOOL_BOTH constexpr float widened(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

/// Returns element i as to_doubles and to_floats decode it. Requires is_computable(dtype).
template <class T>
SHARDTOOL_BOTH inline T number_at(Dtype dtype, const std::byte* elements, i64 i) {
  switch (dtype) {
    case Dtype::kBF16:
      return static_cast<T>(widened(element<std::uint16_t>(elements, i)));
    case Dtype::kF16:
      return static_cast<T>(value_of(element<std::uint16_t>(elements, i), small_format(dtype)));
    case Dtype::kF32:
      return static_cast<T>(element<float>(elements, i));
    case Dtype::kF64:
      return static_cast<T>(element<double>(elements, i));
    case Dtype::kF8E8M0:
      return static_cast<T>(scale_value(element<std::uint8_t>(elements, i)));
    case Dtype::kU8:
    case Dtype::kBool:
      return static_cast<T>(element<std::uint8_t>(elements, i));
    case Dtype::kI8:
      return static_cast<T>(element<std::int8_t>(elements, i));
    case Dtype::kI16:
      return static_cast<T>(element<std::int16_t>(elements, i));
    case Dtype::kU16:
      return static_cast<T>(element<std::uint16_t>(elements, i));
    case Dtype::kI32:
      return static_cast<T>(element<std::int32_t>(elements, i));
    case Dtype::kU32:
      return static_cast<T>(element<std::uint32_t>(elements, i));
    case Dtype::kI64:
      return static_cast<T>(element<std::int64_t>(elements, i));
    case Dtype::kU64:
      return static_cast<T>(element<std::uint64_t>(elements, i));
    default:
      return static_cast<T>(value_of(element<std::uint8_t>(elements, i), small_format(dtype)));
  }
}

/// Residue of m 2^e. Requires a finite value.
SHARDTOOL_BOTH constexpr Field residue_of_finite(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent != 0) mantissa |= std::uint64_t{1} << 52;
  const Field magnitude = to_field(mantissa) * power_of_two((exponent == 0 ? 1 : exponent) - 1075);
  return bits >> 63 != 0 ? -magnitude : magnitude;
}

SHARDTOOL_BOTH constexpr bool is_finite(double value) {
  return (std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) != 0x7ff;
}

/// Bits of element i (1, 2, 4 or 8 bytes) as an unsigned integer modulo p.
SHARDTOOL_BOTH inline Field bits_at(i64 width, const std::byte* elements, i64 i) {
  switch (width) {
    case 1:
      return to_field(element<std::uint8_t>(elements, i));
    case 2:
      return to_field(element<std::uint16_t>(elements, i));
    case 4:
      return to_field(element<std::uint32_t>(elements, i));
    default:
      return to_field(element<std::uint64_t>(elements, i));
  }
}

/// Returns element i, `width` bytes long, as to_residues maps it.
SHARDTOOL_BOTH inline Field residue_at(Dtype dtype, i64 width, NumberMap map,
                                       const std::byte* elements, i64 i) {
  if (map == NumberMap::kBits) return bits_at(width, elements, i);
  switch (dtype) {
    case Dtype::kBool:
    case Dtype::kU8:
    case Dtype::kU16:
    case Dtype::kU32:
    case Dtype::kU64:
      return bits_at(width, elements, i);
    case Dtype::kI8:
      return Field::from_signed(element<std::int8_t>(elements, i));
    case Dtype::kI16:
      return Field::from_signed(element<std::int16_t>(elements, i));
    case Dtype::kI32:
      return Field::from_signed(element<std::int32_t>(elements, i));
    case Dtype::kI64:
      return Field::from_signed(element<std::int64_t>(elements, i));
    default: {
      const auto value = number_at<double>(dtype, elements, i);
      return is_finite(value) ? residue_of_finite(value) : bits_at(width, elements, i);
    }
  }
}

}  // namespace shardtool::kernels
