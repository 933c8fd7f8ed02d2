#pragma once

#include <rapidcheck.h>

#include <optional>
#include <vector>

#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// A box of a row-major array of whole-byte elements.
struct Box {
  std::vector<i64> extents;  ///< extents of the array
  std::vector<i64> begin;
  std::vector<i64> sizes;
  i64 element_bytes = 1;
};

inline i64 array_bytes(const std::vector<i64>& extents, i64 element_bytes) {
  i64 bytes = element_bytes;
  for (const i64 extent : extents) bytes *= extent;
  return bytes;
}

/// A random box, possibly empty, of an array of 0 to 4 axes.
inline Box any_box() {
  Box box;
  box.element_bytes = *rc::gen::element<i64>(1, 2, 4, 8, 3);
  const int rank = *rc::gen::inRange(0, 5);
  for (int axis = 0; axis < rank; ++axis) {
    const i64 extent = *rc::gen::inRange<i64>(1, 9);
    const i64 begin = *rc::gen::inRange<i64>(0, extent);
    box.extents.push_back(extent);
    box.begin.push_back(begin);
    box.sizes.push_back(*rc::gen::inRange<i64>(0, extent - begin + 1));
  }
  return box;
}

/// Copy from the box packed in a buffer (src) to its place in the array (dst).
inline index::StridedCopy unpack(const Box& box) {
  const std::vector<i64> zeros(box.sizes.size());
  return index::lower(box.sizes, {zeros, box.sizes}, {box.begin, box.extents},
                      static_cast<int>(8 * box.element_bytes))
      .value();
}

}  // namespace shardtool::kernels
