#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "shardtool/kernels/crc64/implementation.h"
#include "shardtool/kernels/crc64/polynomial.h"

/// The CRC by carry-less multiplication, for any vector width. A message is taken in blocks of 64
/// bytes: four lanes of 128 bits, each congruent mod P to what it stands for. To append D bytes,
/// every lane is folded over them,
///
///     lane * x^(8D)  =  high(lane) * x^(8D + 64)  ^  low(lane) * x^(8D)      (mod P),
///
/// two multiplications by constants whatever D is. So a stretch of zeros costs as much as one more
/// block, and a first block of less than 64 bytes is padded with zeros in front, which change
/// nothing.
///
/// This header is compiled with the vector unit's flags and so holds only functions with internal
/// linkage: none of them can be linked into code that runs on an older CPU.
namespace shardtool::kernels {

inline constexpr std::int64_t kBlockBytes = 64;

/// The two 64-bit halves of a lane.
struct WordPair {
  std::uint64_t high;
  std::uint64_t low;
};

/// What folds a lane over some bytes: x^(8D + 64) for its high half, x^(8D) for the low one.
static constexpr WordPair distance(std::int64_t bytes) {
  const auto i = static_cast<size_t>(bytes);
  return {kSmallPowers[i + 8], kSmallPowers[i]};
}

static inline __m128i to_vector(WordPair pair) {
  return _mm_set_epi64x(static_cast<std::int64_t>(pair.high), static_cast<std::int64_t>(pair.low));
}

/// (high * x^64 + low) mod P, by Barrett: the quotient is high * (x^64 + kBarrett) / x^64.
static inline std::uint64_t reduce(__m128i value) {
  const __m128i constants = to_vector({kBarrett, kPolynomial});
  const __m128i quotient = _mm_xor_si128(_mm_clmulepi64_si128(value, constants, 0x11), value);
  const __m128i multiple = _mm_clmulepi64_si128(quotient, constants, 0x01);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_xor_si128(value, multiple)));
}

static inline std::uint64_t multiply_by_clmul(std::uint64_t a, std::uint64_t b) {
  return reduce(_mm_clmulepi64_si128(to_vector({0, a}), to_vector({0, b}), 0x00));
}

/// value * x^64 mod P.
static inline std::uint64_t remainder(__m128i value) {
  const __m128i high = _mm_clmulepi64_si128(value, to_vector({0, kSmallPowers[16]}), 0x01);
  return reduce(_mm_xor_si128(high, _mm_slli_si128(value, 8)));
}

/// Block is a value with zero(), load(at), load_last(at, bytes), folded(factor), ^ and lane_sum().
template <class Block>
static std::uint64_t rows_by_folding(const Rows& rows) {
  const std::int64_t head = (rows.run - 1) % kBlockBytes + 1;
  const WordPair to_head = distance(head);
  const WordPair over_gap{multiply_by_clmul(to_head.high, rows.skip),
                          multiply_by_clmul(to_head.low, rows.skip)};
  const typename Block::Factor gap(over_gap);
  const typename Block::Factor next(distance(kBlockBytes));
  Block sum = Block::zero();
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const std::byte* at = rows.first + i * rows.src_stride;
    const std::byte* const end = at + rows.run;
    sum = sum.folded(gap) ^ Block::load_last(at, head);
    for (at += head; at != end; at += kBlockBytes) sum = sum.folded(next) ^ Block::load(at);
  }
  return remainder(sum.lane_sum());
}

}  // namespace shardtool::kernels
