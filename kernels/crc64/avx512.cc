#include "kernels/crc64/folding.inc"

namespace shardtool::kernels {
namespace {

__m512i four_lanes(WordPair d0, WordPair d1, WordPair d2, WordPair d3) {
  const auto word = [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); };
  return _mm512_set_epi64(word(d3.high), word(d3.low), word(d2.high), word(d2.low),  //
                          word(d1.high), word(d1.low), word(d0.high), word(d0.low));
}

/// 64 bytes of the message in one register.
class Block512 {
 public:
  class Factor {
   public:
    explicit Factor(WordPair d) : value_(four_lanes(d, d, d, d)) {}

   private:
    friend class Block512;
    __m512i value_;
  };

  static Block512 zero() { return Block512(_mm512_setzero_si512()); }

  static Block512 load(const std::byte* at) { return from_memory_order(_mm512_loadu_si512(at)); }

  /// Loads only the `bytes` bytes at `at` (masked).
  static Block512 load_last(const std::byte* at, std::int64_t bytes) {
    const __mmask64 last = ~std::uint64_t{0} << (kBlockBytes - bytes);
    return from_memory_order(_mm512_maskz_loadu_epi8(last, at - (kBlockBytes - bytes)));
  }

  Block512 folded(const Factor& by) const { return folded(by.value_); }

  friend Block512 operator^(Block512 a, Block512 b) {
    return Block512(_mm512_xor_si512(a.value_, b.value_));
  }

  /// Folds the four lanes to the end of the block and adds them.
  LaneRegister lane_sum() const {
    alignas(64) LaneRegister lanes[4];
    const __m512i to_end = four_lanes(distance(48), distance(32), distance(16), distance(0));
    _mm512_store_si512(lanes, folded(to_end).value_);
    return add(add(lanes[0], lanes[1]), add(lanes[2], lanes[3]));
  }

 private:
  explicit Block512(__m512i value) : value_(value) {}

  /// Reverses the bytes of each lane: the first becomes the most significant.
  static Block512 from_memory_order(__m512i bytes) {
    constexpr WordPair kReverse{0x0001020304050607, 0x08090A0B0C0D0E0F};
    return Block512(_mm512_shuffle_epi8(bytes, four_lanes(kReverse, kReverse, kReverse, kReverse)));
  }

  Block512 folded(__m512i by) const {
    return Block512(_mm512_xor_si512(_mm512_clmulepi64_epi128(value_, by, 0x11),
                                     _mm512_clmulepi64_epi128(value_, by, 0x00)));
  }

  __m512i value_;
};

}  // namespace

const Implementation kAvx512{"avx512", multiply_by_clmul, rows_by_folding<Block512>};

}  // namespace shardtool::kernels
