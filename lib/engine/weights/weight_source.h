#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Consecutive rows of a device's part of a tensor. For a tensor with one axis more than a matrix,
/// `outer` selects the matrix; with -1 the rows are those of the first axis. A vector is a matrix
/// of one column, a scalar a matrix of one number.
struct StoredRows {
  size_t tensor = 0;  ///< index into the side's tensors
  i64 rank = 0;
  i64 outer = -1;  ///< local index; -1: rows of the first axis
  i64 begin = 0;
  i64 end = 0;

  bool operator==(const StoredRows&) const = default;
};

/// Reader of the tensors of one side of a comparison.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Fills `bytes`, whose size must match, with the rows in row-major order. May be called from
  /// several threads. Throws the errors of reading.
  virtual void read(const StoredRows& rows, std::span<std::byte> bytes) const = 0;
  /// Reads many bytes to any position in `buffer`, and returns that position. The buffer is
  /// page-aligned and has room for `bytes` and two more pages, so that whole pages can be read.
  virtual const std::byte* read_pages(const StoredRows& rows, i64 bytes, std::byte* buffer) const {
    read(rows, {buffer, static_cast<size_t>(bytes)});
    return buffer;
  }
  /// Returns the number of file bytes behind the `bytes` of these rows.
  virtual i64 stored_bytes(const StoredRows& /*rows*/, i64 bytes) const { return bytes; }
  /// Returns the mesh axes along which all devices read the same bytes of a tensor, from the same
  /// places.
  virtual std::vector<std::string> alike_along(size_t /*tensor*/) const { return {}; }
};

/// Returns the mesh axes along which all devices read the same bytes of all these tensors; none
/// without tensors.
std::vector<std::string> alike_along(const WeightSource& source, std::span<const size_t> tensors);

}  // namespace shardtool::engine
