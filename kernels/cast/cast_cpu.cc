#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cast/cast.h"
#include "kernels/cast/implementation.h"
#include "kernels/decode/element.h"
#include "kernels/encode/encode.h"

namespace shardtool::kernels {
namespace {

using Words = std::array<std::uint32_t, kCastBlock>;
using Halves = std::array<std::uint16_t, kCastBlock>;
using Bytes = std::array<std::uint8_t, kCastBlock>;
using Longs = std::array<std::uint64_t, kCastBlock>;
using Doubles = std::array<double, kCastBlock>;
using ByteTable = std::array<std::uint32_t, 256>;

std::vector<CastImplementation> supported_casts() {
  std::vector<CastImplementation> list;
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (wide) list.push_back(kCastAvx512);
  if (__builtin_cpu_supports("avx2")) list.push_back(kCastAvx2);
#endif
  list.push_back(kCastPortable);
  return list;
}

template <class Block>
void load(const std::byte* elements, i64 n, Block& block) {
  std::memcpy(block.data(), elements, static_cast<size_t>(n) * sizeof block[0]);
}

/// F32 bits of an element of an 8-bit format. NaN keeps its mantissa and becomes quiet.
std::uint32_t widened_bits(std::uint32_t element, FloatFormat format) {
  const double value = value_of(element, format);
  if (!std::isnan(value)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  constexpr std::uint32_t kQuiet = 0x7fc00000;
  if (format.is_fnuz) return kQuiet;
  const std::uint32_t mantissa = element & ((1U << format.mantissa_bits) - 1);
  return kQuiet | (element & 0x80) << 24 | mantissa << (23 - format.mantissa_bits);
}

ByteTable table_of(Dtype dtype) {
  ByteTable table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = widened_bits(i, small_format(dtype));
  }
  return table;
}

const ByteTable& table_for(Dtype dtype) {
  static const ByteTable e4m3 = table_of(Dtype::kF8E4M3);
  static const ByteTable e5m2 = table_of(Dtype::kF8E5M2);
  static const ByteTable e4m3_fnuz = table_of(Dtype::kF8E4M3Fnuz);
  static const ByteTable e5m2_fnuz = table_of(Dtype::kF8E5M2Fnuz);
  switch (dtype) {
    case Dtype::kF8E4M3:
      return e4m3;
    case Dtype::kF8E5M2:
      return e5m2;
    case Dtype::kF8E4M3Fnuz:
      return e4m3_fnuz;
    default:
      return e5m2_fnuz;
  }
}

/// Bits of the F32 that rounding to odd gives: rounded again to a shorter format, it gives what the
/// double itself would.
std::uint32_t rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (back == x || std::isnan(x)) return bits;
  return (std::fabs(back) > std::fabs(x) ? bits - 1 : bits) | 1;
}

/// Decodes a block to F32, all but an F64 exactly.
void to_f32(const CastImplementation& with, Dtype from, const std::byte* elements, i64 n,
            Words& floats) {
  switch (from) {
    case Dtype::kF32:
      return load(elements, n, floats);
    case Dtype::kF64: {
      Longs block;
      load(elements, n, block);
      if (with.f64_to_odd_f32(block.data(), n, floats.data())) return;
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        floats[i] = rounded_to_odd(std::bit_cast<double>(block[i]));
      }
      return;
    }
    case Dtype::kBF16: {
      Halves block;
      load(elements, n, block);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        floats[i] = static_cast<std::uint32_t>(block[i]) << 16;
      }
      return;
    }
    case Dtype::kF16: {
      Halves block;
      load(elements, n, block);
      return with.f16_to_f32(block.data(), n, floats.data());
    }
    default: {
      const ByteTable& table = table_for(from);
      Bytes block;
      load(elements, n, block);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) floats[i] = table[block[i]];
    }
  }
}

CastTally f64_to_f32(const std::byte* elements, i64 n, Words& floats) {
  Doubles block;
  load(elements, n, block);
  CastTally tally;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double x = block[i];
    const auto nearest = static_cast<float>(x);
    floats[i] = std::bit_cast<std::uint32_t>(nearest);
    const bool is_inexact = static_cast<double>(nearest) != x;
    tally.nan += std::isnan(x) ? 1 : 0;
    tally.inexact += is_inexact && !std::isnan(x) ? 1 : 0;
    tally.overflowed += is_inexact && std::isinf(nearest) ? 1 : 0;
    tally.underflowed += is_inexact && nearest == 0 ? 1 : 0;
  }
  return tally;
}

CastTally count_nan(const Words& floats, i64 n) {
  CastTally tally;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    tally.nan += (floats[i] & 0x7fffffff) > 0x7f800000 ? 1 : 0;
  }
  return tally;
}

/// Writes only after it has read the whole block, so that the two may overlap.
CastTally cast_block(const CastImplementation& with, Dtype from, Dtype to,
                     const std::byte* elements, i64 n, std::byte* result) {
  Words floats;
  if (to == Dtype::kF32) {
    CastTally tally;
    if (from == Dtype::kF64) {
      tally = f64_to_f32(elements, n, floats);
    } else {
      to_f32(with, from, elements, n, floats);
      tally = count_nan(floats, n);
    }
    std::memcpy(result, floats.data(), static_cast<size_t>(n) * sizeof(std::uint32_t));
    return tally;
  }
  Halves halves;
  to_f32(with, from, elements, n, floats);
  const auto narrow = to == Dtype::kBF16 ? with.f32_to_bf16 : with.f32_to_f16;
  const CastTally tally = narrow(floats.data(), n, halves.data());
  std::memcpy(result, halves.data(), static_cast<size_t>(n) * sizeof(std::uint16_t));
  return tally;
}

}  // namespace

CastCounts& CastCounts::operator+=(const CastCounts& other) {
  values += other.values;
  rounded += other.rounded;
  overflowed += other.overflowed;
  underflowed += other.underflowed;
  nan += other.nan;
  return *this;
}

CastCounts& CastCounts::operator-=(const CastCounts& other) {
  values -= other.values;
  rounded -= other.rounded;
  overflowed -= other.overflowed;
  underflowed -= other.underflowed;
  nan -= other.nan;
  return *this;
}

bool is_castable(Dtype from) {
  return dtype_info(from).kind == DtypeKind::kFloat && bits(from) >= 8 && from != Dtype::kF8E8M0;
}

std::span<const CastImplementation> cast_implementations() {
  static const std::vector<CastImplementation> list = supported_casts();
  return list;
}

CastCounts cast_with(const CastImplementation& implementation, Dtype from, Dtype to,
                     const std::byte* elements, i64 n, std::byte* result) {
  assert(is_castable(from) && is_float_storage(to));
  const i64 from_bytes = bits(from) / 8;
  const i64 to_bytes = bits(to) / 8;
  CastCounts counts;
  counts.values = n;
  for (i64 begin = 0; begin < n; begin += kCastBlock) {
    const CastTally tally = cast_block(implementation, from, to, elements + begin * from_bytes,
                                       std::min(kCastBlock, n - begin), result + begin * to_bytes);
    counts.rounded += tally.inexact - tally.overflowed - tally.underflowed;
    counts.overflowed += tally.overflowed;
    counts.underflowed += tally.underflowed;
    counts.nan += tally.nan;
  }
  return counts;
}

CastCounts cast(Dtype from, Dtype to, const std::byte* elements, i64 n, std::byte* result) {
  return cast_with(cast_implementations().front(), from, to, elements, n, result);
}

}  // namespace shardtool::kernels
