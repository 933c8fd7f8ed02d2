// Distribution of units: part_of and part_extent, and vectors of systems that disagree.
#include <doctest/doctest.h>

#include <limits>
#include <numeric>

#include "tests/support/generators.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using index::Interval;
using layout::kBalanced;
using layout::kCeil;
using layout::kExact;
using layout::kMiddle;
using layout::padded;
using layout::part_of;
using layout::SplitRule;

namespace {

Held parts(i64 n, i64 count, SplitRule rule) {
  return held(layout::split(n, kTp, rule), tp(count));
}

std::vector<i64> sizes(i64 n, i64 count, SplitRule rule) {
  return extents(layout::split(n, kTp, rule), tp(count));
}

}  // namespace

TEST_CASE("parts are disjoint, in order, and cover the axis, whatever the rule") {
  CHECK(rc::check("a partition", [] {
    const i64 n = *gen::between(0, 200);
    const i64 count = *gen::between(1, 20);
    const SplitRule rule =
        *rc::gen::element(kBalanced, kMiddle, kCeil, padded(1), padded(8), padded(7));
    i64 next = 0;
    for (i64 i = 0; i < count; ++i) {
      const Interval part = part_of(n, count, i, rule);
      RC_ASSERT(part.begin == next);
      RC_ASSERT(part.begin <= part.end);
      RC_ASSERT(part.size() <= layout::part_extent(n, count, i, rule));
      next = part.end;
    }
    RC_ASSERT(next == n);
  }));
}

TEST_CASE("balanced gives the first n mod N parts one more") {
  CHECK(parts(10, 3, kBalanced) == Held{"[0, 4)", "[4, 7)", "[7, 10)"});
  CHECK(parts(10, 4, kBalanced) == Held{"[0, 3)", "[3, 6)", "[6, 8)", "[8, 10)"});
  CHECK(parts(151674, 4, kBalanced) ==
        Held{"[0, 37919)", "[37919, 75838)", "[75838, 113756)", "[113756, 151674)"});
  CHECK(sizes(3, 5, kBalanced) == std::vector<i64>{1, 1, 1, 0, 0});
  CHECK(sizes(9, 8, kBalanced) == std::vector<i64>{2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(sizes(151936, 7, kBalanced) ==
        std::vector<i64>{21706, 21705, 21705, 21705, 21705, 21705, 21705});
  CHECK(sizes(60, 8, kBalanced) == std::vector<i64>{8, 8, 8, 8, 7, 7, 7, 7});
}

TEST_CASE("middle gives the n mod N parts before the last one one more") {
  CHECK(parts(10, 3, kMiddle) == Held{"[0, 3)", "[3, 7)", "[7, 10)"});
  CHECK(sizes(61, 4, kMiddle) == std::vector<i64>{15, 15, 16, 15});
  CHECK(sizes(126, 4, kMiddle) == std::vector<i64>{31, 32, 32, 31});
  CHECK(sizes(7, 4, kMiddle) == std::vector<i64>{2, 2, 2, 1});
  CHECK(sizes(2, 4, kMiddle) == std::vector<i64>{0, 1, 1, 0});
}

TEST_CASE("ceil gives full parts first, and clamps the tail to the axis") {
  CHECK(parts(10, 3, kCeil) == Held{"[0, 4)", "[4, 8)", "[8, 10)"});
  CHECK(parts(10, 4, kCeil) == Held{"[0, 3)", "[3, 6)", "[6, 9)", "[9, 10)"});
  CHECK(parts(151674, 4, kCeil) ==
        Held{"[0, 37919)", "[37919, 75838)", "[75838, 113757)", "[113757, 151674)"});
  CHECK(sizes(3, 5, kCeil) == std::vector<i64>{1, 1, 1, 0, 0});
  CHECK(sizes(9, 8, kCeil) == std::vector<i64>{2, 2, 2, 2, 1, 0, 0, 0});
  CHECK(sizes(151936, 7, kCeil) ==
        std::vector<i64>{21706, 21706, 21706, 21706, 21706, 21706, 21700});
}

TEST_CASE("padded rounds the axis up before it is cut") {
  const auto rounded = [](i64 n, i64 count, i64 multiple) {
    const auto all = sizes(n, count, padded(multiple));
    return std::accumulate(all.begin(), all.end(), i64{0});
  };
  CHECK(rounded(50257, 8, 1) == 50264);
  CHECK(rounded(50257, 128, 1) == 50304);
  CHECK(rounded(151674, 4, 1) == 151676);
  CHECK(rounded(32000, 16, 1) == 32000);
  CHECK(rounded(128256, 7, 1) == 128261);
}

TEST_CASE("a vocabulary of 50257 padded to 64 over 8 gives 6288 rows each, 47 of them padding") {
  const auto held_by = parts(50257, 8, padded(64));
  CHECK(sizes(50257, 8, padded(64)) == std::vector<i64>(8, 6288));
  CHECK(held_by.front() == "[0, 6288)");
  CHECK(held_by.back() == "[44016, 50257) pad 47");
}

TEST_CASE("padding may fill whole parts") {
  CHECK(parts(3, 4, padded(4)) == Held{"[0, 1)", "[1, 2)", "[2, 3)", "pad 1"});
  CHECK(parts(5, 2, padded(8)) == Held{"[0, 4)", "[4, 5) pad 3"});
  CHECK(parts(0, 2, padded(8)) == Held{"nothing", "nothing"});
}

TEST_CASE("exact refuses what does not divide and says so") {
  CHECK(sizes(12, 4, kExact) == std::vector<i64>{3, 3, 3, 3});
  const auto thrown = error_of([] { return part_of(10, 4, 0, kExact); });
  REQUIRE(thrown);
  CHECK(thrown->code() == ErrorCode::kNotDivisible);
  CHECK(thrown->message() == "10 units cannot be split evenly over 4 ranks: 10 % 4 = 2");
}

TEST_CASE("the largest axes are cut without overflow") {
  constexpr i64 kMax = std::numeric_limits<i64>::max();
  for (const SplitRule rule : {kBalanced, kMiddle, kCeil}) {
    CHECK(part_of(kMax, 3, 0, rule).begin == 0);
    CHECK(part_of(kMax, 3, 2, rule).end == kMax);
    CHECK(part_of(kMax, 3, 1, rule).end == part_of(kMax, 3, 2, rule).begin);
  }
  CHECK_ERROR(kLimit, part_of(kMax, 3, 0, padded(4)));
  CHECK_ERROR(kLimit, part_of(5, 3, 0, padded(kMax)));
}

TEST_CASE("rules print by name") {
  CHECK(to_string(kExact) == "exact");
  CHECK(to_string(kBalanced) == "balanced");
  CHECK(to_string(kMiddle) == "middle");
  CHECK(to_string(kCeil) == "ceil");
  CHECK(to_string(padded(64)) == "padded(64)");
}
