#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/engine/names.h"
#include "lib/engine/run/product_list.h"

namespace shardtool::engine {

/// The scales of a quantised matrix: its elements are q * s, one s for every block of block_rows x
/// block_columns. A matrix's scales are the tensor that scale_names says, of one number, one per
/// row, or one per block.
template <class N>
class BlockScales {
 public:
  /// Those of a product's matrix; nothing for a plain one. Throws kUnsupported for scales of
  /// another shape, of a matrix stored as [in, out] or with an axis before it, and where the device
  /// lacks the scale of a block that it has.
  static std::optional<BlockScales> of(const Side& side, kernels::NumberMap map,
                                       const Product& product);

  /// Whether every row has one scale for all columns, which is as well that of its product.
  bool is_per_row() const { return is_per_row_; }
  /// Local row r's. Requires is_per_row().
  const N& of_whole_row(i64 r) const { return of_row(r).front(); }
  /// The local rows from `begin` on, before `end`, that have the same scales as row `begin`.
  i64 run_of_rows(i64 begin, i64 end) const;
  /// The scale of every column in local row r; one for all of them if is_per_row().
  const std::vector<N>& of_row(i64 r) const;

 private:
  std::vector<i64> block_of_row_;  ///< number of the block row of every local row
  std::vector<std::vector<N>>
      by_block_;  ///< per block row, the scale of every local column, or one
  bool is_per_row_ = false;
};

/// The tensor that holds a matrix's scales, if the side has one.
std::optional<size_t> scale_tensor_of(const Side& side, size_t tensor);

/// The stored tensors that make up a weight: itself and its scales, or the parts of a packed one.
std::vector<size_t> stored_behind(const Side& side, size_t tensor);

}  // namespace shardtool::engine
