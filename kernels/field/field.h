#pragma once

#include <cstdint>

#include "kernels/both.h"

namespace shardtool::kernels {

/// A residue modulo the Mersenne prime p = 2^61 - 1. Sums and products are exact and independent of
/// order, so two computations of one value either agree bit for bit or differ.
///
/// F1 canonical: 0 <= v < p, so that equality is equality of v
struct Field {
  std::uint64_t v = 0;

  bool operator==(const Field&) const = default;

  /// Any integer; a negative n becomes p - |n|.
  static SHARDTOOL_BOTH constexpr Field from_signed(std::int64_t n);
};

inline constexpr int kFieldBits = 61;
inline constexpr std::uint64_t kFieldPrime = (std::uint64_t{1} << kFieldBits) - 1;

/// Any 64-bit number modulo p.
SHARDTOOL_BOTH constexpr Field to_field(std::uint64_t n) {
  std::uint64_t folded = (n & kFieldPrime) + (n >> kFieldBits);
  if (folded >= kFieldPrime) folded -= kFieldPrime;
  return {folded};
}

constexpr Field Field::from_signed(std::int64_t n) {
  if (n >= 0) return to_field(static_cast<std::uint64_t>(n));
  const Field positive = to_field(std::uint64_t{0} - static_cast<std::uint64_t>(n));
  return {positive.v == 0 ? 0 : kFieldPrime - positive.v};
}

SHARDTOOL_BOTH constexpr Field operator+(Field a, Field b) {
  const std::uint64_t sum = a.v + b.v;
  return {sum >= kFieldPrime ? sum - kFieldPrime : sum};
}

SHARDTOOL_BOTH constexpr Field operator-(Field a, Field b) {
  return {a.v >= b.v ? a.v - b.v : a.v + kFieldPrime - b.v};
}

SHARDTOOL_BOTH constexpr Field operator-(Field a) {
  return Field{} - a;
}

/// Reduces any 128-bit number modulo p by adding its 61-bit digits, whose weight is 1.
__extension__ using Wide = unsigned __int128;
SHARDTOOL_BOTH constexpr Field fold(Wide n) {
  const std::uint64_t low = static_cast<std::uint64_t>(n) & kFieldPrime;
  const std::uint64_t middle = static_cast<std::uint64_t>(n >> kFieldBits) & kFieldPrime;
  return to_field(low + middle + static_cast<std::uint64_t>(n >> (2 * kFieldBits)));
}

/// The product is below 2^122, so it has two digits, whose sum is below 2 p.
SHARDTOOL_BOTH constexpr Field operator*(Field a, Field b) {
  const Wide product = static_cast<Wide>(a.v) * b.v;
  const std::uint64_t low = static_cast<std::uint64_t>(product) & kFieldPrime;
  return Field{low} + Field{static_cast<std::uint64_t>(product >> kFieldBits)};
}

SHARDTOOL_BOTH constexpr Field& operator+=(Field& a, Field b) {
  return a = a + b;
}
SHARDTOOL_BOTH constexpr Field& operator-=(Field& a, Field b) {
  return a = a - b;
}
SHARDTOOL_BOTH constexpr Field& operator*=(Field& a, Field b) {
  return a = a * b;
}

/// a^n.
SHARDTOOL_BOTH constexpr Field power(Field a, std::uint64_t n) {
  Field result{1};
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) result *= a;
    a *= a;
  }
  return result;
}

/// 1 / a, by Fermat's little theorem; 0 for 0.
SHARDTOOL_BOTH constexpr Field inverse(Field a) {
  return power(a, kFieldPrime - 2);
}

/// 2^n for any n, since 2^61 = 1.
SHARDTOOL_BOTH constexpr Field power_of_two(std::int64_t n) {
  std::int64_t exponent = n % kFieldBits;
  if (exponent < 0) exponent += kFieldBits;
  return {std::uint64_t{1} << exponent};
}

/// Number n of the random sequence of a seed: the splitmix64 finalizer (Steele, Lea, Flood 2014) of
/// both. The same on every machine.
SHARDTOOL_BOTH constexpr std::uint64_t hashed(std::uint64_t seed, std::uint64_t n) {
  std::uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

SHARDTOOL_BOTH constexpr Field field_random(std::uint64_t seed, std::uint64_t n) {
  return to_field(hashed(seed, n));
}

}  // namespace shardtool::kernels
