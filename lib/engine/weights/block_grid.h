#pragma once

#include <optional>
#include <vector>

#include "lib/engine/names.h"
#include "lib/engine/run/product_list.h"

namespace shardtool::engine {

/// Numbers of a quantised matrix's blocks on one device, either scales or zero points: one for all,
/// one per row, or one per block.
template <class N>
struct BlockGrid {
  std::vector<i64> of_row, of_column;  ///< index of the block, by local row and local column
  i64 width = 1;                       ///< local blocks per row of blocks
  bool has_columns = false;            ///< the whole tensor has several blocks per row
  std::vector<N> numbers;              ///< row-major

  /// Returns the grid of a product's matrix. Throws kUnsupported for numbers of another shape, for
  /// a matrix stored as [in, out] or with an outer axis, and if the device lacks the number of one
  /// of its blocks.
  static BlockGrid of(const Side& side, kernels::NumberMap map, const MatrixProduct& product,
                      size_t tensor);

  i64 rows() const { return width > 0 ? std::ssize(numbers) / width : 0; }
  const N& at(i64 row, i64 column) const {
    return numbers[static_cast<size_t>(row * width + column)];
  }
};

/// Returns the tensor with a matrix's scales, or with its zero points, if the side has one.
std::optional<size_t> scale_tensor_of(const Side& side, size_t tensor);
std::optional<size_t> zero_tensor_of(const Side& side, size_t tensor);

/// Returns the stored tensors behind a weight: itself, its scales and zero points, or the parts of
/// a packed weight.
std::vector<size_t> stored_behind(const Side& side, size_t tensor);
/// Returns those behind all weights of an op, in its order.
std::vector<size_t> stored_behind(const Side& side, const ops::BoundOp& op);

}  // namespace shardtool::engine
