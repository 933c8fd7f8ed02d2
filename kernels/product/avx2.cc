#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shardtool::kernels {
namespace {

/// Four numbers; 32 x 32 bit products.
struct Lanes {
  static constexpr int kCount = 4;
  static constexpr int kRows = 2;
  __m256i v;

  static Lanes zero() { return {_mm256_setzero_si256()}; }
  static Lanes all(std::uint64_t x) { return {_mm256_set1_epi64x(static_cast<long long>(x))}; }
  static Lanes numbers(const std::uint64_t* at) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))};
  }
  template <class Stored, int kShift>
  static Lanes load(const std::byte* at) {
    if constexpr (sizeof(Stored) == 1) {
      std::uint32_t x;
      std::memcpy(&x, at, sizeof x);
      return {_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(static_cast<int>(x)))};
    } else if constexpr (sizeof(Stored) == 2) {
      return {_mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)))};
    } else {
      const __m256i x =
          _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
      return {_mm256_and_si256(_mm256_srli_epi64(x, kShift), _mm256_set1_epi64x(0xffff))};
    }
  }
  Lanes masked(std::uint64_t mask) const { return {_mm256_and_si256(v, all(mask).v)}; }
  Lanes shifted(int bits) const { return {_mm256_srli_epi64(v, bits)}; }
  void add_product(Lanes a, Lanes b) { v = _mm256_add_epi64(v, _mm256_mul_epu32(a.v, b.v)); }
  std::uint64_t sum() const {
    std::uint64_t x[kCount];
    store(x);
    return (x[0] + x[1]) + (x[2] + x[3]);
  }
  void store(std::uint64_t* at) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v); }
};

}  // namespace
}  // namespace shardtool::kernels

#include "kernels/product/loops.inc"

namespace shardtool::kernels {

const ProductImplementation kProductAvx2 = implementation_named("AVX2");

}  // namespace shardtool::kernels
