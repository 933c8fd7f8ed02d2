#pragma once

#include <cstddef>
#include <span>

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Consecutive rows of what a device has of a tensor. A matrix has its own rows; of a tensor with
/// one axis more, `outer` says which matrix, or rows are those of that axis; a vector is a matrix
/// of one column, a scalar of one number.
struct StoredRows {
  size_t tensor = 0;  ///< index into the side's tensors
  i64 rank = 0;
  i64 outer = -1;  ///< local index; -1: rows are of the first axis
  i64 begin = 0;
  i64 end = 0;
};

/// The bytes of the tensors of one side of a comparison.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Fills `bytes` with the rows, row-major; it has exactly their size. May be called from several
  /// threads. Throws what reading throws.
  virtual void read(const StoredRows& rows, std::span<std::byte> bytes) const = 0;
  /// The same for many bytes, which may begin anywhere in `buffer`: it begins on a page and has
  /// room for `bytes` and two pages more, so that whole pages can be read into it. Returns where.
  virtual const std::byte* read_pages(const StoredRows& rows, i64 bytes, std::byte* buffer) const {
    read(rows, {buffer, static_cast<size_t>(bytes)});
    return buffer;
  }
  /// How many bytes of files the `bytes` of these rows are made of.
  virtual i64 stored_bytes(const StoredRows& /*rows*/, i64 bytes) const { return bytes; }
};

}  // namespace shardtool::engine
