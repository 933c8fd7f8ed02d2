#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A device's part of a tensor as matrices. A vector is a matrix of one column, a scalar a matrix
/// of one number. For a tensor with three axes `outer` is the matrix index; further axes are part
/// of the columns.
struct StoredPart {
  size_t tensor = 0;        ///< index in the shards
  size_t whole_tensor = 0;  ///< index in the whole model
  i64 rank = 0;
  Dtype dtype = Dtype::kBF16;
  bool has_outer = false;
  index::AxisMap outer, rows, columns;
  Shape inner;  ///< extents of the further axes, the fastest part of a column index

  i64 element_bytes() const { return bits(dtype) / 8; }
  i64 row_bytes() const { return columns.local_size() * element_bytes(); }
  /// Bytes per row of the whole matrix.
  i64 whole_row_bytes() const { return columns.global_size() * element_bytes(); }
};

/// Returns nullopt if the device has no part, if the whole model lacks the tensor or has it in
/// another form, and for elements smaller than a byte.
std::optional<StoredPart> stored_part(const Side& whole, const Side& shards, size_t tensor,
                                      i64 rank);

/// Same, but elements that the device's own file lacks are like padding: those that it gathers from
/// others.
std::optional<StoredPart> own_part(const Side& whole, const Side& shards, size_t tensor, i64 rank);

/// Returns the part, followed by one for every copy of the elements that blocks were refined into:
/// equal local indices, disjoint images. Empty if stored_part is nullopt.
std::vector<StoredPart> part_with_copies(const Side& whole, const Side& shards, size_t tensor,
                                         i64 rank);

using ByteRows = std::vector<std::byte>;

/// Reads local rows [begin, end) of matrix `outer` (local) as stored.
ByteRows stored_rows(const Side& shards, const StoredPart& part, i64 outer, i64 begin, i64 end);

/// A rectangle of a matrix of the whole model, given by two maps.
struct WholeMatrix {
  size_t tensor = 0;
  bool has_outer = false;
  i64 outer = 0;  ///< global
  index::AxisMap rows, columns;
};
/// Expected content of the part's matrix `outer` (local); nullopt for padding.
std::optional<WholeMatrix> expected_matrix(const StoredPart& part, i64 outer);
/// Reads its local rows [begin, end), with zeros for padding.
ByteRows whole_rows(const Side& whole, const WholeMatrix& matrix, i64 begin, i64 end);

}  // namespace shardtool::engine
