#include <cstring>

#include "kernels/crc64/folding.inc"

namespace shardtool::kernels {
namespace {

/// 64 bytes of the message in four registers.
class Block128 {
 public:
  class Factor {
   public:
    explicit Factor(WordPair d) : value_(to_vector(d)) {}

   private:
    friend class Block128;
    __m128i value_;
  };

  static Block128 zero() { return {}; }

  static Block128 load(const std::byte* at) {
    const __m128i reverse = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    Block128 block;
    for (int i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + i);
      block.lanes_[i] = _mm_shuffle_epi8(bytes, reverse);
    }
    return block;
  }

  static Block128 load_last(const std::byte* at, std::int64_t bytes) {
    if (bytes == kBlockBytes) return load(at);
    std::byte padded[kBlockBytes] = {};
    std::memcpy(padded + kBlockBytes - bytes, at, static_cast<size_t>(bytes));
    return load(padded);
  }

  Block128 folded(const Factor& by) const {
    Block128 block;
    for (int i = 0; i < 4; ++i) block.lanes_[i] = folded(lanes_[i], by);
    return block;
  }

  friend Block128 operator^(const Block128& a, const Block128& b) {
    Block128 block;
    for (int i = 0; i < 4; ++i) block.lanes_[i] = _mm_xor_si128(a.lanes_[i], b.lanes_[i]);
    return block;
  }

  /// Folds the four lanes to the end of the block and adds them.
  __m128i lane_sum() const {
    const Factor over_lane(distance(16));
    __m128i sum = lanes_[0];
    for (int i = 1; i < 4; ++i) sum = _mm_xor_si128(folded(sum, over_lane), lanes_[i]);
    return sum;
  }

 private:
  static __m128i folded(__m128i lane, const Factor& by) {
    return _mm_xor_si128(_mm_clmulepi64_si128(lane, by.value_, 0x11),
                         _mm_clmulepi64_si128(lane, by.value_, 0x00));
  }

  __m128i lanes_[4] = {};
};

}  // namespace

const Implementation kPclmul{"pclmul", multiply_by_clmul, rows_by_folding<Block128>};

}  // namespace shardtool::kernels
