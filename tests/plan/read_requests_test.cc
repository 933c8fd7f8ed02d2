#include "lib/plan/read_requests.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/generators.h"

using namespace shardtool;
using plan::Reads;
using plan::reads_of;

namespace {

constexpr int kElementBits = 16;

/// Wanted bytes, one by one; neighbours join if the gap is small enough on the same axis and on all
/// axes inside it.
struct Box {
  std::vector<i64> extents;
  std::vector<i64> sizes;
};

Box any_box() {
  Box box;
  const i64 axes = *gen::between(1, 4);
  for (i64 axis = 0; axis < axes; ++axis) {
    box.extents.push_back(*gen::between(1, 6));
    box.sizes.push_back(*gen::between(1, box.extents.back()));
  }
  return box;
}

i64 elements(const std::vector<i64>& sizes) {
  i64 product = 1;
  for (const i64 size : sizes) product *= size;
  return product;
}

/// Positions of the box's elements in the array.
std::vector<i64> positions(const Box& box) {
  std::vector<i64> found{0};
  for (size_t axis = 0; axis < box.sizes.size(); ++axis) {
    std::vector<i64> longer;
    for (const i64 at : found) {
      for (i64 i = 0; i < box.sizes[axis]; ++i) longer.push_back(at * box.extents[axis] + i);
    }
    found = std::move(longer);
  }
  return found;
}

i64 runs(const std::vector<i64>& positions) {
  i64 count = 1;
  for (size_t i = 1; i < positions.size(); ++i) count += positions[i] != positions[i - 1] + 1;
  return count;
}

}  // namespace

TEST_CASE("without gaps a request is a run, and nothing is read that is not wanted") {
  CHECK(rc::check("exact reads", [] {
    const Box box = any_box();
    const i64 wanted = elements(box.sizes) * kElementBits / 8;
    const i64 expected = runs(positions(box));
    RC_ASSERT(reads_of(box.sizes, box.extents, kElementBits, 0) ==
              (Reads{expected, expected, wanted}));
  }));
}

TEST_CASE("larger gaps never make more requests or fewer bytes, and the largest make one") {
  CHECK(rc::check("sieved reads", [] {
    const Box box = any_box();
    const i64 gap = *gen::between(0, 100);
    const Reads few = reads_of(box.sizes, box.extents, kElementBits, gap + 1);
    const Reads many = reads_of(box.sizes, box.extents, kElementBits, gap);
    RC_ASSERT(few.requests <= many.requests);
    RC_ASSERT(few.bytes >= many.bytes);
    const Reads all = reads_of(box.sizes, box.extents, kElementBits, 1 << 20);
    const auto at = positions(box);
    RC_ASSERT(all.requests == 1);
    RC_ASSERT(all.bytes == (at.back() - at.front() + 1) * kElementBits / 8);
  }));
}

TEST_CASE("a cut by columns: 8,192 runs of 7,168 bytes, or one read of the whole") {
  // Llama-3-70B's down_proj on eight devices
  const std::vector<i64> sizes{8192, 3584};
  const std::vector<i64> extents{8192, 28'672};
  CHECK(reads_of(sizes, extents, kElementBits, 50'175) == Reads{8192, 8192, 8192 * 7168});
  CHECK(reads_of(sizes, extents, kElementBits, 50'176) == Reads{8192, 1, 8191 * 57'344 + 7168});
}
