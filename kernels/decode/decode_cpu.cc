#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "shardtool/kernels/decode/decode.h"

namespace shardtool::kernels {
namespace {

/// A floating-point format by its fields: sign, exponent, mantissa.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_infinity = true;  ///< the largest exponent means infinity and NaN
  bool is_fnuz = false;      ///< negative zero means NaN, and nothing else does
};

constexpr FloatFormat kHalf{5, 10, 15};
constexpr FloatFormat kE5M2{5, 2, 15};
constexpr FloatFormat kE4M3{4, 3, 7, false};
constexpr FloatFormat kE4M3Fnuz{4, 3, 8, false, true};
constexpr FloatFormat kE5M2Fnuz{5, 2, 16, false, true};

double value_of(std::uint32_t bits, const FloatFormat& format) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> width & 1) != 0;
  const std::uint32_t magnitude = bits & ((1U << width) - 1);
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const int largest = (1 << format.exponent_bits) - 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (format.is_fnuz && negative && magnitude == 0) return kNan;
  if (format.has_infinity && exponent == largest) {
    return mantissa != 0 ? kNan : std::copysign(HUGE_VAL, negative ? -1 : 1);
  }
  const bool is_e4m3_nan = !format.has_infinity && !format.is_fnuz && exponent == largest &&
                           mantissa == (1U << format.mantissa_bits) - 1;
  if (is_e4m3_nan) return kNan;
  const std::uint32_t leading = exponent == 0 ? 0 : 1U << format.mantissa_bits;
  const double value = std::ldexp(static_cast<double>(leading | mantissa),
                                  std::max(exponent, 1) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

template <int kBits>
using Table = std::array<float, size_t{1} << kBits>;

/// Every value of a small format; all of them are floats exactly.
template <int kBits>
Table<kBits> table_of(const FloatFormat& format) {
  Table<kBits> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>(value_of(static_cast<std::uint32_t>(i), format));
  }
  return table;
}

Table<8> scale_table() {
  Table<8> table{};
  for (int i = 0; i < 255; ++i) table[static_cast<size_t>(i)] = std::ldexp(1.0F, i - 127);
  table[255] = std::numeric_limits<float>::quiet_NaN();
  return table;
}

template <class Stored>
Stored element(const std::byte* elements, i64 i) {
  Stored value;
  std::memcpy(&value, elements + i * static_cast<i64>(sizeof(Stored)), sizeof value);
  return value;
}

template <class Stored, class T, class Convert>
void convert(const std::byte* elements, i64 n, T* values, const Convert& value) {
  for (i64 i = 0; i < n; ++i) values[i] = static_cast<T>(value(element<Stored>(elements, i)));
}

template <class T>
void look_up(const Table<8>& table, const std::byte* elements, i64 n, T* values) {
  convert<std::uint8_t>(elements, n, values, [&table](std::uint8_t x) { return table[x]; });
}

float widened(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

template <class Stored, class T>
void cast(const std::byte* elements, i64 n, T* values) {
  convert<Stored>(elements, n, values, [](Stored x) { return x; });
}

template <class T>
void decode(Dtype dtype, const std::byte* elements, i64 n, T* values) {
  static const Table<16> halves = table_of<16>(kHalf);
  static const Table<8> e5m2 = table_of<8>(kE5M2);
  static const Table<8> e4m3 = table_of<8>(kE4M3);
  static const Table<8> e5m2_fnuz = table_of<8>(kE5M2Fnuz);
  static const Table<8> e4m3_fnuz = table_of<8>(kE4M3Fnuz);
  static const Table<8> scales = scale_table();
  switch (dtype) {
    case Dtype::kBF16:
      return convert<std::uint16_t>(elements, n, values, widened);
    case Dtype::kF16:
      return convert<std::uint16_t>(elements, n, values, [](std::uint16_t x) { return halves[x]; });
    case Dtype::kF32:
      return cast<float>(elements, n, values);
    case Dtype::kF64:
      return cast<double>(elements, n, values);
    case Dtype::kF8E5M2:
      return look_up(e5m2, elements, n, values);
    case Dtype::kF8E4M3:
      return look_up(e4m3, elements, n, values);
    case Dtype::kF8E5M2Fnuz:
      return look_up(e5m2_fnuz, elements, n, values);
    case Dtype::kF8E4M3Fnuz:
      return look_up(e4m3_fnuz, elements, n, values);
    case Dtype::kF8E8M0:
      return look_up(scales, elements, n, values);
    case Dtype::kU8:
    case Dtype::kBool:
      return cast<std::uint8_t>(elements, n, values);
    case Dtype::kI8:
      return cast<std::int8_t>(elements, n, values);
    case Dtype::kI16:
      return cast<std::int16_t>(elements, n, values);
    case Dtype::kU16:
      return cast<std::uint16_t>(elements, n, values);
    case Dtype::kI32:
      return cast<std::int32_t>(elements, n, values);
    case Dtype::kU32:
      return cast<std::uint32_t>(elements, n, values);
    case Dtype::kI64:
      return cast<std::int64_t>(elements, n, values);
    case Dtype::kU64:
      return cast<std::uint64_t>(elements, n, values);
    default:
      return;
  }
}

template <class Stored>
void bits_of(const std::byte* elements, i64 n, Field* residues) {
  for (i64 i = 0; i < n; ++i) residues[i] = to_field(element<Stored>(elements, i));
}

/// By the width of an element alone.
void bits_of(Dtype dtype, const std::byte* elements, i64 n, Field* residues) {
  switch (bits(dtype)) {
    case 8:
      return bits_of<std::uint8_t>(elements, n, residues);
    case 16:
      return bits_of<std::uint16_t>(elements, n, residues);
    case 32:
      return bits_of<std::uint32_t>(elements, n, residues);
    default:
      return bits_of<std::uint64_t>(elements, n, residues);
  }
}

}  // namespace

bool is_computable(Dtype dtype) {
  return bits(dtype) % 8 == 0 && dtype != Dtype::kC64;
}

void to_doubles(Dtype dtype, const std::byte* elements, i64 n, double* values) {
  decode(dtype, elements, n, values);
}

void to_floats(Dtype dtype, const std::byte* elements, i64 n, float* values) {
  decode(dtype, elements, n, values);
}

Field residue_of(double value) {
  int exponent = 0;
  constexpr int kMantissaBits = std::numeric_limits<double>::digits;
  const double mantissa = std::ldexp(std::frexp(value, &exponent), kMantissaBits);
  return Field::from_signed(static_cast<std::int64_t>(mantissa)) *
         power_of_two(exponent - kMantissaBits);
}

void to_residues(Dtype dtype, NumberMap map, const std::byte* elements, i64 n, Field* residues) {
  bits_of(dtype, elements, n, residues);
  const bool is_integer = dtype_info(dtype).kind != DtypeKind::kFloat;
  if (map == NumberMap::kBits || (is_integer && dtype_info(dtype).kind != DtypeKind::kSigned)) {
    return;
  }
  for (i64 i = 0; i < n; ++i) {
    double value = 0;
    to_doubles(dtype, elements + i * (bits(dtype) / 8), 1, &value);
    if (std::isfinite(value)) residues[i] = residue_of(value);
  }
}

}  // namespace shardtool::kernels
