#pragma once

#include <span>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Ranges of an array, and the requests that fetch them.
///
/// Q1 requests <= runs   Q2 bytes is the total of the requests, gaps included
struct Reads {
  i64 runs = 0;  ///< contiguous ranges
  i64 requests = 0;
  i64 bytes = 0;

  Reads& operator+=(const Reads& other);
  bool operator==(const Reads&) const = default;
};
/// Total of `count` equal reads. Throws kLimit on overflow.
Reads operator*(const Reads& reads, i64 count);

/// Default for unknown storage: gaps of up to this many bytes are read and discarded.
inline constexpr i64 kReadThrough = 64 << 10;

/// Reads of a box of `sizes` in a row-major array of `extents`, both outermost axis first, of
/// elements of `bits`. Adjacent runs share a request if the gap between them is at most `most_gap`
/// bytes (data sieving: Thakur, Gropp, Lusk 1999); 0: every run is a request. O(axes).
Reads reads_of(std::span<const i64> sizes, std::span<const i64> extents, int bits, i64 most_gap);

}  // namespace shardtool::plan
