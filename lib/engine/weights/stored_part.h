#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// What one device stores of a tensor, as matrices: a vector is a matrix of one column, a scalar of
/// one number; `outer` numbers the matrices of a tensor with one axis more, and further axes are
/// part of their columns.
struct StoredPart {
  size_t tensor = 0;        ///< of the shards
  size_t whole_tensor = 0;  ///< the same in the whole model
  i64 rank = 0;
  Dtype dtype = Dtype::kBF16;
  bool has_outer = false;
  index::AxisMap outer, rows, columns;
  Shape inner;  ///< extents of the further axes, which the last places of a column are on

  i64 element_bytes() const { return bits(dtype) / 8; }
  i64 row_bytes() const { return columns.local_size() * element_bytes(); }
  /// Of a row of the whole matrix.
  i64 whole_row_bytes() const { return columns.global_size() * element_bytes(); }
};

/// Nothing where the device has none of it, where the whole model lacks the tensor or has it in
/// another form, and for elements of less than a byte.
std::optional<StoredPart> stored_part(const Side& whole, const Side& shards, size_t tensor,
                                      i64 rank);

/// The part, and behind it one for every copy of the elements that blocks were refined into: local
/// indices are the same, images disjoint. Empty where stored_part is.
std::vector<StoredPart> part_with_copies(const Side& whole, const Side& shards, size_t tensor,
                                         i64 rank);

using ByteRows = std::vector<std::byte>;

/// Local rows [begin, end) of matrix `outer` (local), as they are stored.
ByteRows stored_rows(const Side& shards, const StoredPart& part, i64 outer, i64 begin, i64 end);

/// The rectangle of a matrix of the whole model that two maps place.
struct WholeMatrix {
  size_t tensor = 0;
  bool has_outer = false;
  i64 outer = 0;  ///< global
  index::AxisMap rows, columns;
};
/// What the part's matrix `outer` (local) is to be; nothing where it is padding.
std::optional<WholeMatrix> expected_matrix(const StoredPart& part, i64 outer);
/// Local rows [begin, end) of it, zeros for padding.
ByteRows whole_rows(const Side& whole, const WholeMatrix& matrix, i64 begin, i64 end);

}  // namespace shardtool::engine
