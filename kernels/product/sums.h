#pragma once

#include <cstdint>

#include "kernels/both.h"
#include "kernels/decode/element.h"
#include "kernels/product/product.h"

/// Sums of products of stored weights and numbers, and how a weight becomes their factor, for code
/// that runs on host and GPU.
///
/// A sum has types Weight and Input (of x, as held in fast memory; `of` makes it of a number) and
/// Number (its value). After kMost products it must be folded: its value is added to a residue, and
/// it begins again; 0: never.
namespace shardtool::kernels {

/// Products of floats, each rounded before it is added.
template <class T>
struct RealSum {
  using Weight = T;
  using Input = T;
  using Number = T;
  static constexpr i64 kMost = 0;
  T sum = 0;

  SHARDTOOL_BOTH static Input of(T x) { return x; }
  SHARDTOOL_BOTH void add(T w, T x) { sum += w * x; }
  SHARDTOOL_BOTH T value() const { return sum; }
};

/// Products of weights below 2^16. x is split into two parts, so that a product is one instruction
/// and kMost of them fit.
struct NarrowSum {
  using Weight = std::uint32_t;
  struct Input {
    std::uint32_t low, high;
  };
  using Number = Field;
  static constexpr i64 kMost = i64{1} << 16;
  static constexpr int kLowBits = 31;
  std::uint64_t low = 0, high = 0;

  SHARDTOOL_BOTH static Input of(Field x) {
    return {static_cast<std::uint32_t>(x.v & ((std::uint64_t{1} << kLowBits) - 1)),
            static_cast<std::uint32_t>(x.v >> kLowBits)};
  }
  SHARDTOOL_BOTH void add(Weight w, Input x) {
    low += std::uint64_t{w} * x.low;
    high += std::uint64_t{w} * x.high;
  }
  SHARDTOOL_BOTH Field value() const { return fold(Wide{low} + (Wide{high} << kLowBits)); }
};

/// Products of any residues; one has 122 bits.
struct WideSum {
  using Weight = std::uint64_t;
  using Input = std::uint64_t;
  using Number = Field;
  static constexpr i64 kMost = 32;
  Wide sum = 0;

  SHARDTOOL_BOTH static Input of(Field x) { return x.v; }
  SHARDTOOL_BOTH void add(Weight w, Input x) { sum += static_cast<Wide>(w) * x; }
  SHARDTOOL_BOTH Field value() const { return fold(sum); }
};

/// Stored elements of kBytes as numbers of type T.
template <class T, int kBytes_>
struct NumberWeights {
  static constexpr int kBytes = kBytes_;
  Dtype dtype;

  SHARDTOOL_BOTH T at(const std::byte* element) const { return number_at<T>(dtype, element, 0); }
};
template <class T>
struct Bf16Weights {
  static constexpr int kBytes = 2;

  SHARDTOOL_BOTH T at(const std::byte* element) const {
    return number_at<T>(Dtype::kBF16, element, 0);
  }
};
/// Bits of elements of up to 16 bits.
template <int kBytes_>
struct BitWeights {
  static constexpr int kBytes = kBytes_;

  SHARDTOOL_BOTH std::uint32_t at(const std::byte* element) const {
    return static_cast<std::uint32_t>(bits_at(kBytes, element, 0).v);
  }
};
/// Stored elements of kBytes as residues.
template <int kBytes_>
struct ResidueWeights {
  static constexpr int kBytes = kBytes_;
  Dtype dtype;
  NumberMap map;

  SHARDTOOL_BOTH std::uint64_t at(const std::byte* element) const {
    return residue_at(dtype, kBytes, map, element, 0).v;
  }
};

}  // namespace shardtool::kernels
