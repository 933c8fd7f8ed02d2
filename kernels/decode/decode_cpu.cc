#include <array>
#include <cstdint>

#include "kernels/decode/decode.h"
#include "kernels/decode/element.h"

namespace shardtool::kernels {
namespace {

template <int kBits>
using Table = std::array<float, size_t{1} << kBits>;

/// Table of all values of a small format. Every value is exact as a float.
template <int kBits>
Table<kBits> table_of(FloatFormat format) {
  Table<kBits> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>(value_of(static_cast<std::uint32_t>(i), format));
  }
  return table;
}

Table<8> scale_table() {
  Table<8> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>(scale_value(static_cast<std::uint8_t>(i)));
  }
  return table;
}

template <class Stored, class T, class Convert>
void convert(const std::byte* elements, i64 n, T* values, const Convert& value) {
  for (i64 i = 0; i < n; ++i) values[i] = static_cast<T>(value(element<Stored>(elements, i)));
}

template <class T>
void look_up(const Table<8>& table, const std::byte* elements, i64 n, T* values) {
  convert<std::uint8_t>(elements, n, values, [&table](std::uint8_t x) { return table[x]; });
}

template <class Stored, class T>
void cast(const std::byte* elements, i64 n, T* values) {
  convert<Stored>(elements, n, values, [](Stored x) { return x; });
}

template <class T>
void decode(Dtype dtype, const std::byte* elements, i64 n, T* values) {
  static const Table<16> halves = table_of<16>(small_format(Dtype::kF16));
  static const Table<8> e5m2 = table_of<8>(small_format(Dtype::kF8E5M2));
  static const Table<8> e4m3 = table_of<8>(small_format(Dtype::kF8E4M3));
  static const Table<8> e5m2_fnuz = table_of<8>(small_format(Dtype::kF8E5M2Fnuz));
  static const Table<8> e4m3_fnuz = table_of<8>(small_format(Dtype::kF8E4M3Fnuz));
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

/// Depends only on the width of an element.
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
  return residue_of_finite(value);
}

void to_residues(Dtype dtype, NumberMap map, const std::byte* elements, i64 n, Field* residues) {
  if (map == NumberMap::kBits) return bits_of(dtype, elements, n, residues);
  const i64 width = bits(dtype) / 8;
  for (i64 i = 0; i < n; ++i) residues[i] = residue_at(dtype, width, map, elements, i);
}

}  // namespace shardtool::kernels
