#pragma once

#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A stored matrix that one device multiplies by in one op. It is read in one piece or in chunks.
struct MatrixProduct {
  enum class Role { kOnly, kGate, kUp, kDown };  ///< kGate: gate, or gate and up in one

  size_t tensor = 0;
  i64 rank = 0;
  i64 outer = -1;  ///< local index on the axis before the matrix; -1: no such axis
  i64 above = 0;   ///< number of the tensor's local rows before the matrix
  Dtype dtype = Dtype::kBF16;
  index::AxisMap rows, columns;  ///< axes of the matrix
  bool is_in_out = false;        ///< rows are inputs, columns are outputs
  i64 group_rows = 0;            ///< rows per group; 0: rows are not in groups
  index::AxisMap group_inputs;   ///< inputs of the device's groups, one group after the other
  Role role = Role::kOnly;
  i64 expert = -1;            ///< global index
  bool is_looked_up = false;  ///< an embedding table of which only some rows are read

  const index::AxisMap& inputs() const {
    return group_rows > 0 ? group_inputs : is_in_out ? rows : columns;
  }
  const index::AxisMap& outputs() const { return is_in_out ? columns : rows; }
  /// Returns the position of rows [begin, end).
  StoredRows stored(index::Interval at) const {
    return {tensor, rank, outer, above + at.begin, above + at.end};
  }
  i64 row_bytes() const { return columns.local_size() * bits(dtype) / 8; }
};

/// A rectangle of a product's matrix, in local rows and columns.
struct MatrixBlock {
  index::Interval rows, columns;
  const std::byte* bytes = nullptr;  ///< first element
  i64 stride = 0;                    ///< elements between the starts of consecutive rows
};

/// Rows of a block that read the same inputs, the first of which is `first_input`.
struct GroupBlock {
  MatrixBlock block;
  i64 first_input = 0;
};
/// Splits a block into one per group; returns the block itself if there are no groups.
std::vector<GroupBlock> by_group(const MatrixProduct& product, const MatrixBlock& block);

/// Returns the block of part `part` of `parts` of the work on consecutive rows: its share of the
/// outputs, and all inputs that they sum over.
MatrixBlock share_of_work(const MatrixProduct& product, index::Interval rows,
                          const std::byte* bytes, i64 part, i64 parts);

/// Returns the products of an op on one device, in the order of computation; empty for an op
/// without matrices. Throws kUnsupported for a dtype smaller than a byte, for a tensor with other
/// axes, and if a device has only some of an expert's matrices.
std::vector<MatrixProduct> products_of(const Side& side, const ops::BoundOp& op, i64 rank);

}  // namespace shardtool::engine
