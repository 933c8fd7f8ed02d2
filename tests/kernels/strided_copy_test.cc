#include "kernels/strided_copy/strided_copy.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/kernels/box.h"

namespace shardtool::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// Distinct neighbours: byte i differs from bytes i+-1 to i+-250.
Bytes counted(i64 size) {
  Bytes bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(1 + i % 251);
  return bytes;
}

/// True if element `index` of the array (row-major) is in the box.
bool inside(const Box& box, i64 index) {
  for (size_t axis = box.extents.size(); axis-- > 0;) {
    const i64 at = index % box.extents[axis];
    if (at < box.begin[axis] || at >= box.begin[axis] + box.sizes[axis]) return false;
    index /= box.extents[axis];
  }
  return true;
}

/// The copy back: src and dst exchanged.
index::StridedCopy inverse(index::StridedCopy copy) {
  std::swap(copy.src, copy.dst);
  for (index::Loop& loop : copy.loops) std::swap(loop.src_stride, loop.dst_stride);
  return copy;
}

TEST_CASE("unpacking a box writes its elements in order and nothing else") {
  CHECK(rc::check("unpack, element by element", [] {
    const Box box = any_box();
    const index::StridedCopy copy = unpack(box);
    const Bytes packed = counted(index::byte_count(copy));
    Bytes array(static_cast<size_t>(array_bytes(box.extents, box.element_bytes)));
    strided_copy(copy, packed.data(), array.data());
    size_t next = 0;
    for (size_t i = 0; i < array.size(); ++i) {
      const bool taken = inside(box, static_cast<i64>(i) / box.element_bytes);
      RC_ASSERT(array[i] == (taken ? packed[next++] : std::byte{0}));
    }
    RC_ASSERT(next == packed.size());
  }));
}

TEST_CASE("packing undoes unpacking") {
  CHECK(rc::check("inverse(copy) after copy is the identity", [] {
    const index::StridedCopy copy = unpack(any_box());
    const Bytes packed = counted(index::byte_count(copy));
    Bytes array(static_cast<size_t>(1 << 16));
    Bytes back(packed.size());
    strided_copy(copy, packed.data(), array.data());
    strided_copy(inverse(copy), array.data(), back.data());
    RC_ASSERT(back == packed);
  }));
}

TEST_CASE("every length of run is copied exactly, the specialised ones too") {
  for (i64 run = 1; run <= 130; ++run) {
    const index::StridedCopy copy{.src = 1, .dst = 2, .run = run, .loops = {{3, run + 1, run + 2}}};
    const Bytes from = counted(4 * run + 10);
    Bytes to(from.size() + 10);
    strided_copy(copy, from.data(), to.data());
    Bytes expected(to.size());
    for (i64 i = 0; i < 3; ++i) {
      for (i64 b = 0; b < run; ++b) {
        expected[static_cast<size_t>(2 + i * (run + 2) + b)] =
            from[static_cast<size_t>(1 + i * (run + 1) + b)];
      }
    }
    CAPTURE(run);
    CHECK(to == expected);
  }
}

TEST_CASE("an empty copy touches neither buffer") {
  strided_copy({}, nullptr, nullptr);
  CHECK(index::byte_count({}) == 0);
}

}  // namespace
}  // namespace shardtool::kernels
