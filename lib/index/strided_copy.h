#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::index {

/// One loop of a strided copy; strides in bytes.
struct Loop {
  i64 count = 1;
  i64 src_stride = 0;
  i64 dst_stride = 0;

  bool operator==(const Loop&) const = default;
};

/// Copies a box between two row-major arrays. All fields are bytes:
///
///     for each index tuple (i0, i1, ...) over `loops`, outermost first:
///       dst[dst + sum ik * dst_stride_k, + run) = src[src + sum ik * src_stride_k, + run)
///
/// Normal form: no loop has count 1, no two loops can be merged, and no loop can be merged into the
/// run. Its size is O(rank), for any size of the box.
struct StridedCopy {
  i64 src = 0;
  i64 dst = 0;
  i64 run = 0;
  std::vector<Loop> loops;

  bool operator==(const StridedCopy&) const = default;
};

/// Place of a box in a row-major array, in elements: its first index on every axis, and the extents
/// of the array.
struct BoxSide {
  std::span<const i64> begin;
  std::span<const i64> extents;
};

/// Lowers the copy of a box of `sizes` elements of `element_bits` bits between two arrays to normal
/// form. Nullopt when an offset, a stride or a run is not a whole number of bytes. An empty box has
/// run 0.
std::optional<StridedCopy> lower(std::span<const i64> sizes, BoxSide src, BoxSide dst,
                                 int element_bits);

/// Restricts the copy of a box of `rows` rows (indices of its first axis) to the rows [begin, end).
/// Requires 0 <= begin < end <= rows; if rows are not whole bytes, begin and end must be at whole
/// bytes.
StridedCopy rows_of(const StridedCopy& copy, i64 rows, i64 begin, i64 end);

/// Bytes moved: run times all counts.
i64 byte_count(const StridedCopy& copy);

}  // namespace shardtool::index
