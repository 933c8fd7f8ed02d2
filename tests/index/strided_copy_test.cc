#include "lib/index/strided_copy.h"

#include <doctest/doctest.h>

#include "tests/support/generators.h"

using namespace shardtool;
using index::Loop;
using index::StridedCopy;
using reference::Bytes;

namespace {

/// A box inside two row-major arrays.
struct BoxCase {
  Shape sizes, src_begin, src_extents, dst_begin, dst_extents;

  std::optional<StridedCopy> lowered(int bits) const {
    return index::lower(sizes, {src_begin, src_extents}, {dst_begin, dst_extents}, bits);
  }
};

BoxCase any_box() {
  BoxCase box;
  const i64 rank = *gen::between(0, 4);
  for (i64 a = 0; a < rank; ++a) {
    box.sizes.push_back(*rc::gen::weightedElement<i64>({{1, 0}, {6, 1}, {8, 2}, {8, 3}, {8, 4}}));
    // The box is often as wide as the array, so that axes merge.
    for (const auto& side : {std::pair(&box.src_begin, &box.src_extents),
                             std::pair(&box.dst_begin, &box.dst_extents)}) {
      const bool full = *rc::gen::arbitrary<bool>();
      side.first->push_back(full ? 0 : *gen::between(0, 2));
      side.second->push_back(box.sizes.back() + side.first->back() +
                             (full ? 0 : *gen::between(0, 2)));
    }
  }
  return box;
}

/// [source bit, destination bit, bits) of the longest runs of elements that are contiguous on both
/// sides, in the order of the box.
struct BitRun {
  i64 src, dst, size;
};
std::vector<BitRun> longest_runs(const BoxCase& box, int bits) {
  std::vector<BitRun> runs;
  for (auto tuple : reference::tuples(box.sizes)) {
    auto there = tuple;
    for (size_t a = 0; a < tuple.size(); ++a) {
      tuple[a] += box.src_begin[a];
      there[a] += box.dst_begin[a];
    }
    const i64 src = reference::row_major(tuple, box.src_extents) * bits;
    const i64 dst = reference::row_major(there, box.dst_extents) * bits;
    const bool continues = !runs.empty() && runs.back().src + runs.back().size == src &&
                           runs.back().dst + runs.back().size == dst;
    if (continues) {
      runs.back().size += bits;
    } else {
      runs.push_back({src, dst, bits});
    }
  }
  return runs;
}

bool normal_form(const StridedCopy& copy) {
  for (size_t k = 0; k < copy.loops.size(); ++k) {
    const Loop& loop = copy.loops[k];
    if (loop.count < 2) return false;
    const bool innermost = k + 1 == copy.loops.size();
    const Loop& inner = innermost ? loop : copy.loops[k + 1];
    const i64 src = innermost ? copy.run : inner.count * inner.src_stride;
    const i64 dst = innermost ? copy.run : inner.count * inner.dst_stride;
    if (loop.src_stride == src && loop.dst_stride == dst) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a box is lowered to the copy of its elements, in normal form") {
  CHECK(rc::check("lower == element by element, for every element size", [] {
    const BoxCase box = any_box();
    const int bits = *rc::gen::element(4, 6, 8, 16, 32, 64);
    const i64 elements = *element_count(box.sizes);
    bool in_whole_bytes = true;
    for (const BitRun& run : longest_runs(box, bits)) {
      in_whole_bytes = in_whole_bytes && run.src % 8 == 0 && run.dst % 8 == 0 && run.size % 8 == 0;
    }
    RC_CLASSIFY(!in_whole_bytes, "inside a byte");
    const auto copy = box.lowered(bits);
    RC_ASSERT(copy.has_value() == in_whole_bytes);
    if (!copy) return;
    RC_ASSERT(normal_form(*copy));
    RC_ASSERT(byte_count(*copy) * 8 == elements * bits);
    RC_ASSERT(copy->loops.size() <= box.sizes.size());
    const Bytes src = reference::numbered(*element_count(box.src_extents), bits);
    Bytes expected = reference::zeros(*element_count(box.dst_extents), bits);
    Bytes found = expected;
    for (auto from : reference::tuples(box.sizes)) {
      auto to = from;
      for (size_t a = 0; a < from.size(); ++a) {
        from[a] += box.src_begin[a];
        to[a] += box.dst_begin[a];
      }
      reference::copy_element(src, reference::row_major(from, box.src_extents), expected,
                              reference::row_major(to, box.dst_extents), bits);
    }
    reference::run(*copy, src, found);
    RC_ASSERT(found == expected);
  }));
}

TEST_CASE("the rows of a copy are the copy of these rows") {
  CHECK(rc::check("rows_of(lower(box)) == lower(rows of the box)", [] {
    BoxCase box = any_box();
    const int bits = *rc::gen::element(4, 8, 32);
    const auto whole = box.lowered(bits);
    const i64 rows = box.sizes.empty() ? 0 : box.sizes.front();
    RC_PRE((whole.has_value() && byte_count(*whole) > 0 && rows > 0));
    const i64 begin = *gen::between(0, rows - 1);
    const i64 end = *gen::between(begin + 1, rows);
    box.sizes.front() = end - begin;
    box.src_begin.front() += begin;
    box.dst_begin.front() += begin;
    const auto part = box.lowered(bits);
    RC_PRE(part.has_value());
    RC_ASSERT(rows_of(*whole, rows, begin, end) == *part);
  }));
}

TEST_CASE("a column cut of a large matrix is one descriptor, whatever its rows") {
  // 53248 x 16384, columns [2048, 4096), 2 bytes: 8 such copies replace 425,984 row copies.
  const BoxCase box{{53248, 2048}, {0, 2048}, {53248, 16384}, {0, 0}, {53248, 2048}};
  const auto copy = box.lowered(16);
  REQUIRE(copy);
  CHECK(*copy == StridedCopy{4096, 0, 4096, {{53248, 32768, 4096}}});
}

TEST_CASE("a row cut is one run") {
  const BoxCase box{{1024, 4096}, {1024, 0}, {4096, 4096}, {0, 0}, {1024, 4096}};
  CHECK(*box.lowered(16) == StridedCopy{1024 * 8192, 0, 1024 * 8192, {}});
}

TEST_CASE("an empty box and a scalar have their own forms") {
  CHECK(*BoxCase{{0}, {3}, {5}, {1}, {4}}.lowered(4) == StridedCopy{});
  CHECK(*BoxCase{}.lowered(32) == StridedCopy{0, 0, 4, {}});
  CHECK(byte_count(StridedCopy{}) == 0);
}

TEST_CASE("a cut inside a byte cannot be lowered") {
  CHECK_FALSE(BoxCase{{4}, {1}, {8}, {0}, {4}}.lowered(4));                 // begins at half a byte
  CHECK_FALSE(BoxCase{{3}, {0}, {8}, {0}, {4}}.lowered(4));                 // ends at half a byte
  CHECK_FALSE(BoxCase{{2, 2}, {0, 0}, {2, 3}, {0, 0}, {2, 2}}.lowered(4));  // rows of 12 bits
  CHECK(BoxCase{{2, 2}, {0, 0}, {2, 4}, {0, 0}, {2, 2}}.lowered(4));
  CHECK(BoxCase{{4}, {4}, {8}, {0}, {4}}.lowered(6));  // 24 bits at bit 24
  CHECK_FALSE(BoxCase{{2}, {4}, {8}, {0}, {2}}.lowered(6));
}
