#pragma once

#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A stored matrix that one device multiplies with in one op, whole or streamed.
struct Product {
  enum class Role { kOnly, kGate, kUp, kDown };  ///< kGate: or gate and up in one

  size_t tensor = 0;
  i64 rank = 0;
  i64 outer = -1;  ///< local index on the axis before the matrix; -1: none
  i64 above = 0;   ///< local rows of the tensor before those of the matrix
  Dtype dtype = Dtype::kBF16;
  index::AxisMap rows, columns;  ///< of the matrix
  bool is_in_out = false;        ///< rows are inputs
  i64 group_rows = 0;            ///< of each group, where rows are in groups; 0: they are not
  index::AxisMap group_inputs;   ///< of all groups that the device has, one after the other
  Role role = Role::kOnly;
  i64 expert = -1;            ///< global number
  bool is_looked_up = false;  ///< a table of which some rows are wanted, in every number system

  const index::AxisMap& inputs() const {
    return group_rows > 0 ? group_inputs : is_in_out ? rows : columns;
  }
  const index::AxisMap& outputs() const { return is_in_out ? columns : rows; }
  /// The position of rows [begin, end).
  StoredRows stored(index::Interval at) const {
    return {tensor, rank, outer, above + at.begin, above + at.end};
  }
  i64 row_bytes() const { return columns.local_size() * bits(dtype) / 8; }
};

/// A rectangle of a product's matrix, in local rows and columns, and its elements.
struct MatrixBlock {
  index::Interval rows, columns;
  const std::byte* bytes = nullptr;  ///< of the first element
  i64 stride = 0;                    ///< elements from a row to the next
};

/// A stretch of a block whose rows read the same inputs, from the product's `first_input` on.
struct GroupBlock {
  MatrixBlock block;
  i64 first_input = 0;
};
/// A block as it is, or of a product in groups one for each group. `bytes` is that of its rows.
std::vector<GroupBlock> by_group(const Product& product, const MatrixBlock& block);

/// Returns the block of part `part` of `parts` of the work on consecutive rows: its share of the
/// outputs, and all inputs that they sum over.
MatrixBlock share_of_work(const Product& product, index::Interval rows, const std::byte* bytes,
                          i64 part, i64 parts);

/// The products of one op on one device, in the order in which they are computed; none for an op
/// without matrices. Throws kUnsupported for a dtype that is no number of whole bytes, for a tensor
/// of other axes, and where a device has one matrix of an expert and not another.
std::vector<Product> products_of(const Side& side, const ops::BoundOp& op, i64 rank);

}  // namespace shardtool::engine
