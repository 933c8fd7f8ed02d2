#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace shardtool::kernels {
namespace {

/// Eight numbers; 52 x 52 bit products (IFMA), whose results fit into the low 52 bits.
struct Lanes {
  static constexpr int kCount = 8;
  static constexpr int kRows = 4;
  __m512i v;

  static Lanes zero() { return {_mm512_setzero_si512()}; }
  static Lanes all(std::uint64_t x) { return {_mm512_set1_epi64(static_cast<long long>(x))}; }
  static Lanes numbers(const std::uint64_t* at) { return {_mm512_loadu_si512(at)}; }
  template <class Stored, int kShift>
  static Lanes load(const std::byte* at) {
    if constexpr (sizeof(Stored) == 1) {
      return {_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)))};
    } else if constexpr (sizeof(Stored) == 2) {
      return {_mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)))};
    } else {
      const __m512i x =
          _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
      return {_mm512_and_si512(_mm512_srli_epi64(x, kShift), _mm512_set1_epi64(0xffff))};
    }
  }
  Lanes masked(std::uint64_t mask) const { return {_mm512_and_si512(v, all(mask).v)}; }
  Lanes shifted(unsigned bits) const { return {_mm512_srli_epi64(v, bits)}; }
  void add_product(Lanes a, Lanes b) { v = _mm512_madd52lo_epu64(v, a.v, b.v); }
  std::uint64_t sum() const { return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(v)); }
  void store(std::uint64_t* at) const { _mm512_storeu_si512(at, v); }
};

}  // namespace
}  // namespace shardtool::kernels

#include "kernels/product/loops.inc"

namespace shardtool::kernels {

const ProductImplementation kProductAvx512 = implementation_named("AVX-512");

}  // namespace shardtool::kernels
