#pragma once

#include <optional>
#include <vector>

#include "lib/engine/weights/block_grid.h"

namespace shardtool::engine {

/// Scales of a quantised matrix: its elements are q * s, with one s per block of block_rows x
/// block_columns. The scales are in the tensor that scale_names names: one number, one per row, or
/// one per block.
template <class N>
class BlockScales {
 public:
  /// Returns the scales of a product's matrix; nullopt for a plain matrix. Throws the errors of
  /// BlockGrid::of.
  static std::optional<BlockScales> of(const Side& side, kernels::NumberMap map,
                                       const MatrixProduct& product);

  /// True if every row has one scale for all columns, which then also scales its product.
  bool is_per_row() const { return is_per_row_; }
  /// Scale of local row r. Requires is_per_row().
  const N& of_whole_row(i64 r) const { return of_row(r).front(); }
  /// Number of local rows in [begin, end) with the same scales as row `begin`, counted from
  /// `begin`.
  i64 run_of_rows(i64 begin, i64 end) const;
  /// Scales of the columns in local row r; a single one if is_per_row().
  const std::vector<N>& of_row(i64 r) const;

 private:
  std::vector<i64> block_of_row_;  ///< block row of every local row
  std::vector<std::vector<N>>
      by_block_;  ///< per block row: the scale of every local column, or one
  bool is_per_row_ = false;
};

}  // namespace shardtool::engine
