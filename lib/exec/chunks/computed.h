#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cast/cast.h"
#include "lib/base/checked.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::exec {

/// Counts and digests of computing a tensor, or a part of one. Reports of disjoint parts add up to
/// that of the whole.
struct ComputedReport {
  kernels::CastCounts counts;          ///< of the computed elements, each once
  std::vector<std::uint64_t> digests;  ///< linear CRC-64 of every stored tensor that was read

  ComputedReport& operator+=(const ComputedReport& other);
  bool operator==(const ComputedReport&) const = default;
};

/// Box of a tensor, and the memory for its elements. All axes but the last are flattened into the
/// row number.
struct ComputedBox {
  i64 row = 0, rows = 0;
  i64 column = 0, columns = 0;
  std::byte* memory = nullptr;  ///< of the first element; those of a row are contiguous
  i64 stride = 0;               ///< bytes from row to row
};

/// A tensor that no file holds: its elements are computed from those of stored tensors. A box needs
/// only few stored elements, so every chunk reads no more than it needs.
class ComputedTensor {
 public:
  virtual ~ComputedTensor() = default;

  /// Computes the elements of a box and adds their counts and digests to the report. For any
  /// partition of the tensor into boxes, the sum is the same. May be called from several threads.
  /// Throws the errors of reading.
  virtual void compute(const ComputedBox& box, std::span<const SourceFile> files,
                       ComputedReport& report) const = 0;
  /// Throws kDataMismatch if a stored tensor has a known digest and `whole` has another one.
  virtual void check(const ComputedReport& whole) const = 0;
  /// Bits of memory per element that compute needs beside the box.
  virtual int scratch_bits() const = 0;
};

}  // namespace shardtool::exec
