#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "shardtool/kernels/float_census/float_census.h"

namespace shardtool::kernels {
namespace {

// A float without its sign bit orders by magnitude, infinity above every number and NaN above
// infinity. So one maximum over a block tells whether there is anything to count in it, and the
// loop that finds it has no branch: compilers turn it into the vector unit's maximum.

/// An element that lies anywhere in a buffer of bytes.
template <class Stored>
using Unaligned [[gnu::may_alias, gnu::aligned(1)]] = Stored;

/// Bytes between two looks at the maximum; a block stays in the first-level cache.
constexpr size_t kBlockBytes = 16384;

/// IEEE 754 and its 8-bit kin: magnitudes above `infinity` are NaN. Bits is signed: the baseline of
/// x86-64 has signed 16-bit maxima.
template <class Bits, Bits kInfinity>
struct SignedFloat {
  using Stored = Bits;
  static Bits magnitude(Bits x) {
    return static_cast<Bits>(x & std::make_unsigned_t<Bits>(-1) >> 1);
  }
  static bool is_nan(Bits m) { return m > kInfinity; }
  static bool is_infinite(Bits m) { return m == kInfinity; }
  static constexpr Bits kLargestFinite = kInfinity - 1;
};

using BFloat16 = SignedFloat<std::int16_t, 0x7f80>;
using Float16 = SignedFloat<std::int16_t, 0x7c00>;
using Float32 = SignedFloat<std::int32_t, 0x7f800000>;
using Float64 = SignedFloat<std::int64_t, 0x7ff0000000000000>;

struct Float8E5M2 {
  using Stored = std::uint8_t;
  static std::uint8_t magnitude(std::uint8_t x) { return x & 0x7f; }
  static bool is_nan(std::uint8_t m) { return m > 0x7c; }
  static bool is_infinite(std::uint8_t m) { return m == 0x7c; }
  static constexpr std::uint8_t kLargestFinite = 0x7b;
};

struct Float8E4M3 {
  using Stored = std::uint8_t;
  static std::uint8_t magnitude(std::uint8_t x) { return x & 0x7f; }
  static bool is_nan(std::uint8_t m) { return m == 0x7f; }
  static bool is_infinite(std::uint8_t) { return false; }
  static constexpr std::uint8_t kLargestFinite = 0x7e;
};

struct Float8E8M0 {
  using Stored = std::uint8_t;
  static std::uint8_t magnitude(std::uint8_t x) { return x; }
  static bool is_nan(std::uint8_t m) { return m == 0xff; }
  static bool is_infinite(std::uint8_t) { return false; }
  static constexpr std::uint8_t kLargestFinite = 0xfe;
};

/// Both 8-bit formats without infinities and without a negative zero, whose bits mean NaN.
struct Float8Fnuz {
  using Stored = std::uint8_t;
  static std::uint8_t magnitude(std::uint8_t x) { return x == 0x80 ? 0x80 : x & 0x7f; }
  static bool is_nan(std::uint8_t m) { return m == 0x80; }
  static bool is_infinite(std::uint8_t) { return false; }
  static constexpr std::uint8_t kLargestFinite = 0x7f;
};

/// What is no float: only its zeros are looked at.
struct RawBytes {
  using Stored = std::uint8_t;
  static std::uint8_t magnitude(std::uint8_t x) { return x; }
  static bool is_nan(std::uint8_t) { return false; }
  static bool is_infinite(std::uint8_t) { return false; }
  static constexpr std::uint8_t kLargestFinite = 0xff;
};

/// The elements of which as many can be counted in one of them: counting in the elements' own width
/// keeps the loop in the vector unit.
template <class Stored>
constexpr size_t kCountable = sizeof(Stored) == 1 ? 240 : 8192;

template <class Format>
void count_odd(const Unaligned<typename Format::Stored>* block, size_t count, FloatCensus& census) {
  using Stored = typename Format::Stored;
  for (size_t begin = 0; begin < count; begin += kCountable<Stored>) {
    const size_t end = std::min(count, begin + kCountable<Stored>);
    Stored nan = 0;
    Stored infinite = 0;
    for (size_t i = begin; i < end; ++i) {
      const auto m = Format::magnitude(block[i]);
      nan = static_cast<Stored>(nan + (Format::is_nan(m) ? 1 : 0));
      infinite = static_cast<Stored>(infinite + (Format::is_infinite(m) ? 1 : 0));
    }
    census.nan += nan;
    census.infinite += infinite;
  }
}

template <class Format>
void count_block(const Unaligned<typename Format::Stored>* block, size_t count,
                 FloatCensus& census) {
  typename Format::Stored largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto m = Format::magnitude(block[i]);
    largest = m > largest ? m : largest;
  }
  census.all_zero = census.all_zero && largest == 0;
  if (largest > Format::kLargestFinite) count_odd<Format>(block, count, census);
}

template <class Format>
FloatCensus count(std::span<const std::byte> buffer) {
  using Stored = typename Format::Stored;
  FloatCensus census;
  while (!buffer.empty()) {
    const size_t bytes = std::min(buffer.size(), kBlockBytes);
    count_block<Format>(reinterpret_cast<const Unaligned<Stored>*>(buffer.data()),
                        bytes / sizeof(Stored), census);
    buffer = buffer.subspan(bytes);
  }
  return census;
}

}  // namespace

FloatCensus float_census(Dtype dtype, std::span<const std::byte> buffer) {
  switch (dtype) {
    case Dtype::kBF16:
      return count<BFloat16>(buffer);
    case Dtype::kF16:
      return count<Float16>(buffer);
    case Dtype::kF32:
    case Dtype::kC64:
      return count<Float32>(buffer);
    case Dtype::kF64:
      return count<Float64>(buffer);
    case Dtype::kF8E5M2:
      return count<Float8E5M2>(buffer);
    case Dtype::kF8E4M3:
      return count<Float8E4M3>(buffer);
    case Dtype::kF8E8M0:
      return count<Float8E8M0>(buffer);
    case Dtype::kF8E4M3Fnuz:
    case Dtype::kF8E5M2Fnuz:
      return count<Float8Fnuz>(buffer);
    default:
      return count<RawBytes>(buffer);
  }
}

}  // namespace shardtool::kernels
