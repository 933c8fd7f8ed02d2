#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardtool::kernels {

/// P(x) = x^64 + kPolynomial(x), ECMA-182. Bit i of a word is the coefficient of x^i.
inline constexpr std::uint64_t kPolynomial = 0x42F0E1EBA9EA3693;

/// a * x mod P.
constexpr std::uint64_t times_x(std::uint64_t a) {
  return (a << 1) ^ (kPolynomial & (0 - (a >> 63)));
}

/// a * b mod P, bit by bit. Every constant below is computed from this definition.
constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  for (int bit = 63; bit >= 0; --bit) sum = times_x(sum) ^ (a & (0 - (b >> bit & 1)));
  return sum;
}

/// x^(8 * 2^k) mod P for each bit k of a non-negative 64-bit byte count.
inline constexpr auto kPowersOfTwo = [] {
  std::array<std::uint64_t, 63> powers{1U << 8};
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = product(powers[k - 1], powers[k - 1]);
  return powers;
}();

/// x^(8 * bytes) mod P for 0 <= bytes < 272, used to fold blocks.
inline constexpr auto kSmallPowers = [] {
  std::array<std::uint64_t, 272> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = product(powers[i - 1], 1U << 8);
  return powers;
}();

/// floor(x^128 / P) = x^64 + kBarrett(x): P's reciprocal, for division by multiplication.
inline constexpr std::uint64_t kBarrett = [] {
  std::uint64_t quotient = 0;
  std::uint64_t rest = kPolynomial;
  for (int bit = 63; bit >= 0; --bit) {
    quotient |= (rest >> 63) << bit;
    rest = times_x(rest);
  }
  return quotient;
}();

}  // namespace shardtool::kernels
