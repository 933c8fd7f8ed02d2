#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "lib/engine/run/part.h"
#include "lib/engine/weights/block_grid.h"

namespace shardtool::engine {

/// Zero points of a quantised matrix with scales: its elements are (q - z) * s, so that its product
/// is that of q * s less z * s times the sum of the block's inputs.
template <class N>
class BlockZeros {
 public:
  /// Returns the zero points of a product's matrix; nullopt if it has none or no scales. Throws the
  /// errors of BlockGrid::of.
  static std::optional<BlockZeros> of(const Side& side, kernels::NumberMap map,
                                      const MatrixProduct& product);

  /// Subtracts the part of the zero points from y, the product of x with q * s.
  void subtract(const MatrixProduct& product, const Part<N>& x, i64 tokens, Part<N>& y) const;

 private:
  BlockGrid<N> scales_, zeros_;
  /// The columns' distinct blocks of scales and zero points, and each local column's index there.
  std::vector<std::pair<i64, i64>> blocks_;
  std::vector<size_t> block_of_column_;
};

}  // namespace shardtool::engine
