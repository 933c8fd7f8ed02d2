#include "lib/store/s3/part_plan.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <numeric>

using namespace shardtool;
using namespace shardtool::store::s3;

namespace {

constexpr i64 kMiB = 1 << 20;

/// Bytes of parts that lie inside of a range.
i64 copied_bytes(const std::vector<i64>& parts, std::span<const ByteRange> copyable) {
  i64 copied = 0;
  i64 at = 0;
  for (const i64 bytes : parts) {
    for (const ByteRange& range : copyable) {
      if (range.offset <= at && at + bytes <= range.end()) copied += bytes;
    }
    at += bytes;
  }
  return copied;
}

}  // namespace

TEST_CASE("a header takes what it lacks from the first range") {
  const ByteRange range{kMiB, 20 * kMiB};
  const auto parts = plan_parts(21 * kMiB, {&range, 1}, 8 * kMiB);
  CHECK(parts == std::vector<i64>{5 * kMiB, 16 * kMiB});
}

TEST_CASE(
    "what lies between two ranges takes from the end of the first and the begin of the second") {
  const std::vector<ByteRange> ranges{{5 * kMiB, 8 * kMiB}, {14 * kMiB, 8 * kMiB}};
  const auto parts = plan_parts(22 * kMiB, ranges, 8 * kMiB);
  CHECK(parts == std::vector<i64>{5 * kMiB, 5 * kMiB, 5 * kMiB, 7 * kMiB});
  CHECK(copied_bytes(parts, ranges) == 12 * kMiB);
}

TEST_CASE("a range below the size of a part is not copied") {
  const std::vector<ByteRange> small{{6 * kMiB, 4 * kMiB}, {12 * kMiB, 3 * kMiB}};
  const auto parts = plan_parts(15 * kMiB, small, 16 * kMiB);
  CHECK(parts == std::vector<i64>{15 * kMiB});
}

TEST_CASE("parts have the sizes that a store takes, and lose little of any ranges") {
  CHECK(rc::check("any ranges", [] {
    const auto gaps = *rc::gen::container<std::vector<i64>>(rc::gen::inRange<i64>(0, 12 * kMiB));
    std::vector<ByteRange> ranges;
    i64 end = *rc::gen::inRange<i64>(1, 2 * kMiB);
    i64 all = 0;
    i64 lost = kLeastPartBytes;  // by the header
    for (const i64 gap : gaps) {
      const i64 bytes = *rc::gen::inRange<i64>(1, 300 * kMiB);
      ranges.push_back({end + gap, bytes});
      end += gap + bytes;
      all += bytes;
      lost += bytes < 3 * kLeastPartBytes ? bytes : kLeastPartBytes;
    }
    end += *rc::gen::inRange<i64>(0, 3 * kMiB);
    const auto parts = plan_parts(end, ranges, 8 * kMiB);
    RC_ASSERT(std::accumulate(parts.begin(), parts.end(), i64{0}) == end);
    RC_ASSERT(std::ssize(parts) <= kMostParts);
    for (size_t p = 0; p < parts.size(); ++p) {
      RC_ASSERT(parts[p] > 0);
      RC_ASSERT((parts[p] >= kLeastPartBytes || p + 1 == parts.size()));
      RC_ASSERT(parts[p] <= kMostCopyBytes);
    }
    RC_ASSERT(copied_bytes(parts, ranges) >= all - lost);
  }));
}

TEST_CASE("an object with nothing to copy has parts of about one size") {
  for (const i64 bytes :
       {i64{1}, 3 * kMiB, 5 * kMiB, 9 * kMiB, 100 * kMiB + 7, i64{50'000'000'000}}) {
    const auto parts = plan_parts(bytes, {}, 8 * kMiB);
    CHECK(std::accumulate(parts.begin(), parts.end(), i64{0}) == bytes);
    CHECK(std::ssize(parts) <= kMostParts);
    CHECK((parts.front() >= kLeastPartBytes || parts.size() == 1));
    CHECK(parts.front() <= 10 * kMiB);
  }
}
