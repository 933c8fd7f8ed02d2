#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cast/cast.h"
#include "lib/base/checked.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::exec {

/// Effect of computing a tensor, or a part of one; parts add up.
struct ComputedReport {
  kernels::CastCounts counts;          ///< of the computed elements, each once
  std::vector<std::uint64_t> digests;  ///< linear CRC-64 of every stored tensor behind it

  ComputedReport& operator+=(const ComputedReport& other);
  bool operator==(const ComputedReport&) const = default;
};

/// Box of a tensor [.., rows, columns] whose outer axes are flattened into the row number, and the
/// memory for its elements.
struct ComputedBox {
  i64 row = 0, rows = 0;
  i64 column = 0, columns = 0;
  std::byte* memory = nullptr;  ///< of the first element; those of a row are contiguous
  i64 stride = 0;               ///< bytes from row to row
};

/// A tensor that no file holds: its elements are computed from those of stored tensors. The stored
/// elements behind a box are few, so that every chunk reads only what it needs.
class ComputedTensor {
 public:
  virtual ~ComputedTensor() = default;

  /// Computes the elements of a box. Adds to the report: over the boxes of any partition of the
  /// tensor it sums to the counts and digests of the whole. May be called from several threads.
  /// Throws the errors of reading.
  virtual void compute(const ComputedBox& box, std::span<const SourceFile> files,
                       ComputedReport& report) const = 0;
  /// Throws kDataMismatch if the digests of all stored elements are not those that are known.
  virtual void check(const ComputedReport& whole) const = 0;
  /// Bits of memory per element that compute needs beside the box.
  virtual int scratch_bits() const = 0;
};

}  // namespace shardtool::exec
