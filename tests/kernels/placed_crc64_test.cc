#include "kernels/digest/placed_crc64.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>

#include "kernels/crc64/crc64.h"
#include "kernels/strided_copy/strided_copy.h"
#include "tests/kernels/box.h"
#include "tests/kernels/crc64_reference.h"

namespace shardtool::kernels {
namespace {

using Bytes = std::vector<std::byte>;

Bytes patterned(i64 size, std::uint32_t seed) {
  Bytes bytes(static_cast<size_t>(size));
  for (auto& byte : bytes) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

/// Digest of an array with the runs at their places and zeros elsewhere.
std::uint64_t brute_force(const index::StridedCopy& copy, const std::byte* buffer, i64 total) {
  Bytes array(static_cast<size_t>(total));
  strided_copy(copy, buffer, array.data());
  return reference_crc(array);
}

void reverse_loop(index::StridedCopy& copy, index::Loop& loop) {
  copy.src += (loop.count - 1) * loop.src_stride;
  copy.dst += (loop.count - 1) * loop.dst_stride;
  loop.src_stride = -loop.src_stride;
  loop.dst_stride = -loop.dst_stride;
}

TEST_CASE("the digest of a placed box is the digest of an array that is zero elsewhere") {
  CHECK(rc::check("placed = brute force", [](std::uint32_t seed) {
    const Box box = any_box();
    const index::StridedCopy copy = unpack(box);
    const i64 total = array_bytes(box.extents, box.element_bytes);
    const Bytes buffer = patterned(index::byte_count(copy), seed);
    RC_ASSERT(placed_crc64(copy, buffer.data(), total) == brute_force(copy, buffer.data(), total));
  }));
}

TEST_CASE("the order and the direction of the loops do not matter") {
  CHECK(rc::check("loops permuted and reversed", [](std::uint32_t seed) {
    const Box box = any_box();
    index::StridedCopy copy = unpack(box);
    const i64 total = array_bytes(box.extents, box.element_bytes);
    const Bytes buffer = patterned(index::byte_count(copy), seed);
    const std::uint64_t expected = placed_crc64(copy, buffer.data(), total);
    for (index::Loop& loop : copy.loops) {
      if (*rc::gen::arbitrary<bool>()) reverse_loop(copy, loop);
    }
    if (copy.loops.size() > 1) {
      std::swap(copy.loops[0], copy.loops[*rc::gen::inRange<size_t>(1, copy.loops.size())]);
    }
    RC_ASSERT(placed_crc64(copy, buffer.data(), total) == expected);
  }));
}

TEST_CASE("over the parts of a partition the digests add up to the digest of the tensor") {
  CHECK(rc::check("XOR over parts = Crc64::of(tensor)", [](std::uint32_t seed) {
    const Box shape = any_box();
    const i64 total = array_bytes(shape.extents, shape.element_bytes);
    const Bytes tensor = patterned(total, seed);
    std::vector<Box> parts{{shape.extents, std::vector<i64>(shape.extents.size()), shape.extents,
                            shape.element_bytes}};
    const int cuts = shape.extents.empty() ? 0 : *rc::gen::inRange(0, 12);
    for (int i = 0; i < cuts; ++i) {  // each cut halves one part on one axis
      Box& low = parts[*rc::gen::inRange<size_t>(0, parts.size())];
      const auto axis = *rc::gen::inRange<size_t>(0, shape.extents.size());
      Box high = low;
      const i64 kept = *rc::gen::inRange<i64>(0, low.sizes[axis] + 1);
      low.sizes[axis] = kept;
      high.begin[axis] += kept;
      high.sizes[axis] -= kept;
      parts.push_back(high);
    }
    std::uint64_t sum = 0;
    for (const Box& part : parts) {
      index::StridedCopy in_place = unpack(part);
      in_place.src = in_place.dst;
      for (index::Loop& loop : in_place.loops) loop.src_stride = loop.dst_stride;
      sum ^= placed_crc64(in_place, tensor.data(), total);
    }
    RC_ASSERT(sum == Crc64::of(tensor));
  }));
}

TEST_CASE("runs of every length up to 200 bytes, from unaligned places") {
  const Bytes buffer = patterned(5000, 7);
  for (i64 run = 1; run <= 200; ++run) {
    const index::StridedCopy copy{
        .src = 3, .dst = 11, .run = run, .loops = {{9, run + 5, 5 * run}}};
    CAPTURE(run);
    CHECK(placed_crc64(copy, buffer.data(), 60 * run + 50) ==
          brute_force(copy, buffer.data(), 60 * run + 50));
  }
}

TEST_CASE("two parts that change places change the digest") {
  const Bytes buffer = patterned(512, 3);
  const auto at = [&](i64 src, i64 dst) {
    return placed_crc64({.src = src, .dst = dst, .run = 256, .loops = {}}, buffer.data(), 512);
  };
  CHECK((at(0, 0) ^ at(256, 256)) == Crc64::of(buffer));
  CHECK((at(0, 256) ^ at(256, 0)) != Crc64::of(buffer));
}

TEST_CASE("bytes that lie scattered give the digest of the same bytes side by side") {
  CHECK(rc::check("scattered = contiguous", [] {
    const i64 run = *rc::gen::inRange<i64>(1, 40);
    const i64 inner = *rc::gen::inRange<i64>(1, 6);
    const i64 outer = *rc::gen::inRange<i64>(1, 6);
    const index::StridedCopy copy{
        .src = 5,
        .dst = 3,
        .run = run,
        .loops = {{outer, inner * run, inner * (run + 7)}, {inner, run, run + 7}}};
    const Bytes buffer = patterned(5 + outer * inner * run, 11);
    const i64 total = 3 + outer * inner * (run + 7);
    const auto crc_of_run = [&](i64 src) {
      return Crc64::of(
          std::span(buffer).subspan(static_cast<size_t>(src), static_cast<size_t>(run)));
    };
    RC_ASSERT(placed_crc64(copy, crc_of_run, total) == placed_crc64(copy, buffer.data(), total));
  }));
}

TEST_CASE("an empty box contributes nothing and reads nothing") {
  CHECK(placed_crc64({}, nullptr, 100) == 0);
}

}  // namespace
}  // namespace shardtool::kernels
