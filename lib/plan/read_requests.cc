#include "lib/plan/read_requests.h"

#include "lib/plan/byte_count.h"

namespace shardtool::plan {
namespace {

/// Number of pieces, and elements per piece with the gaps inside it.
struct Pieces {
  i64 count = 1;
  i64 elements = 1;
};

Pieces pieces_of(std::span<const i64> sizes, std::span<const i64> extents, i64 most_gap) {
  Pieces pieces;
  i64 stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0; stride *= extents[axis]) {
    if (pieces.count == 1 && stride - pieces.elements <= most_gap) {
      pieces.elements += (sizes[axis] - 1) * stride;
    } else {
      pieces.count *= sizes[axis];
    }
  }
  return pieces;
}

}  // namespace

Reads& Reads::operator+=(const Reads& other) {
  add_bytes(runs, other.runs);
  add_bytes(requests, other.requests);
  add_bytes(bytes, other.bytes);
  return *this;
}

Reads operator*(const Reads& reads, i64 count) {
  return {times(reads.runs, count), times(reads.requests, count), times(reads.bytes, count)};
}

Reads reads_of(std::span<const i64> sizes, std::span<const i64> extents, int bits, i64 most_gap) {
  constexpr int kBitsPerByte = 8;
  const Pieces wide = pieces_of(sizes, extents, most_gap * kBitsPerByte / bits);
  return {pieces_of(sizes, extents, 0).count, wide.count,
          bytes_of(wide.elements, bits, wide.count)};
}

}  // namespace shardtool::plan
