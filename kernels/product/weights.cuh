#pragma once

#include "kernels/device/block.cuh"
#include "kernels/product/sums.h"

/// Weights and sums as the threads of a block see them.
namespace shardtool::kernels::SHARDTOOL_GPU {

inline constexpr int kVectorBytes = 16;

/// An element of kBytes in a register.
template <int kBytes>
using Word = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

/// The threads of a block fill a table of all elements of one byte, which they look up instead of
/// decoding them. Elements of other widths are decoded.
template <class Sum, class Decoder>
class BlockWeights {
 public:
  using Weight = typename Sum::Weight;
  static constexpr bool kHasTable = Decoder::kBytes == 1;
  static constexpr int kRoom = kHasTable ? 256 : 1;

  /// `table` has kRoom weights and is shared by the block, which synchronises before at().
  __device__ BlockWeights(const Decoder& decoder, Weight* table)
      : decoder_(decoder), table_(table) {
    if constexpr (kHasTable) {
      for (int i = static_cast<int>(threadIdx.x); i < kRoom; i += static_cast<int>(blockDim.x)) {
        const auto room = static_cast<std::uint64_t>(i);  // little-endian
        table[i] = decoder.at(reinterpret_cast<const std::byte*>(&room));
      }
    }
  }
  __device__ Weight at(const std::byte* element) const {
    if constexpr (kHasTable) return table_[static_cast<int>(*element)];
    return decoder_.at(element);
  }
  /// The same of an element in a register.
  template <class Word>
  __device__ Weight of(Word word) const {
    const std::uint64_t room = word;  // little-endian
    return at(reinterpret_cast<const std::byte*>(&room));
  }

 private:
  const Decoder& decoder_;
  const Weight* table_;
};

/// Sums of kTokens rows of x with one row or column of weights. Residues are folded in time.
template <class Sum, int kTokens>
class Sums {
 public:
  using Number = typename Sum::Number;

  __device__ void add(int t, typename Sum::Weight w, typename Sum::Input x) { sums_[t].add(w, x); }
  /// Must be called before any sum has kMost products since the last call, if kMost is not 0.
  __device__ void fold() {
    for (int t = 0; t < kTokens; ++t) {
      folded_[t] += sums_[t].value();
      sums_[t] = Sum{};
    }
  }
  __device__ Number value(int t) const {
    if constexpr (Sum::kMost > 0) return folded_[t] + sums_[t].value();
    return sums_[t].value();
  }

 private:
  Sum sums_[kTokens];
  Number folded_[Sum::kMost > 0 ? kTokens : 1]{};
};

}  // namespace shardtool::kernels::SHARDTOOL_GPU
