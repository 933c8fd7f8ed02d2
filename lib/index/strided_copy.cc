#include "lib/index/strided_copy.h"

#include <algorithm>

namespace shardtool::index {
namespace {

/// Offset, in elements, of a box's first element in a row-major array.
i64 offset_of(BoxSide side) {
  i64 offset = 0;
  for (size_t a = 0; a < side.begin.size(); ++a) offset = offset * side.extents[a] + side.begin[a];
  return offset;
}

/// Adds an outer loop (strides in bits), merged into the inner one where both sides allow.
void add_outer(StridedCopy& copy, Loop loop) {
  if (loop.count == 1) return;
  if (copy.loops.empty()) {
    const bool contiguous = loop.src_stride == copy.run && loop.dst_stride == copy.run;
    if (contiguous) {
      copy.run *= loop.count;
      return;
    }
  } else {
    Loop& inner = copy.loops.back();
    const bool continues = loop.src_stride == inner.count * inner.src_stride &&
                           loop.dst_stride == inner.count * inner.dst_stride;
    if (continues) {
      inner.count *= loop.count;
      return;
    }
  }
  copy.loops.push_back(loop);
}

bool to_bytes(StridedCopy& copy) {
  bool whole = true;
  const auto convert = [&whole](i64& bits) {
    whole = whole && bits % 8 == 0;
    bits /= 8;
  };
  convert(copy.src);
  convert(copy.dst);
  convert(copy.run);
  for (Loop& loop : copy.loops) {
    convert(loop.src_stride);
    convert(loop.dst_stride);
  }
  return whole;
}

}  // namespace

std::optional<StridedCopy> lower(std::span<const i64> sizes, BoxSide src, BoxSide dst,
                                 int element_bits) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return StridedCopy{};
  StridedCopy copy{offset_of(src) * element_bits, offset_of(dst) * element_bits, element_bits, {}};
  i64 src_stride = element_bits;
  i64 dst_stride = element_bits;
  for (size_t a = sizes.size(); a-- > 0;) {
    add_outer(copy, {sizes[a], src_stride, dst_stride});
    src_stride *= src.extents[a];
    dst_stride *= dst.extents[a];
  }
  std::reverse(copy.loops.begin(), copy.loops.end());
  if (!to_bytes(copy)) return std::nullopt;
  return copy;
}

StridedCopy rows_of(const StridedCopy& copy, i64 rows, i64 begin, i64 end) {
  StridedCopy part = copy;
  if (copy.loops.empty()) {  // the rows are one run
    part.src += copy.run * begin / rows;
    part.dst += copy.run * begin / rows;
    part.run = copy.run * (end - begin) / rows;
    return part;
  }
  Loop& outer = part.loops.front();
  const i64 steps = outer.count / rows;  // of each row: above 1 after a merge with an inner axis
  if (rows == 1) return part;
  part.src += begin * steps * outer.src_stride;
  part.dst += begin * steps * outer.dst_stride;
  outer.count = (end - begin) * steps;
  if (outer.count == 1) part.loops.erase(part.loops.begin());
  return part;
}

i64 byte_count(const StridedCopy& copy) {
  i64 bytes = copy.run;
  for (const Loop& loop : copy.loops) bytes *= loop.count;
  return bytes;
}

}  // namespace shardtool::index
