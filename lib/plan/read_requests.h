#pragma once

#include <span>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Stretches of an array that are wanted, and the requests that fetch them.
///
/// Q1 requests <= runs   Q2 bytes is what the requests fetch, gaps included
struct Reads {
  i64 runs = 0;  ///< contiguous
  i64 requests = 0;
  i64 bytes = 0;

  Reads& operator+=(const Reads& other);
  bool operator==(const Reads&) const = default;
};
/// The same for several alike. Throws kLimit on overflow.
Reads operator*(const Reads& reads, i64 count);

/// Where nothing is known of a storage, gaps of up to so many bytes are read and thrown away.
inline constexpr i64 kReadThrough = 64 << 10;

/// A box of `sizes` in a row-major array of `extents`, both outermost axis first, of elements of
/// `bits`. Neighbours go into one request where the gap between them is at most `most_gap` bytes
/// (data sieving: Thakur, Gropp, Lusk 1999); 0: every run is a request. O(axes).
Reads reads_of(std::span<const i64> sizes, std::span<const i64> extents, int bits, i64 most_gap);

}  // namespace shardtool::plan
