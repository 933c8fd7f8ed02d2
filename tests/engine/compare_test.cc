#include "lib/engine/diagnosis/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lib/base/error.h"
#include "tests/support/throws.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;

/// One token on device 3: features 4 to 6 of 8, and one of padding.
Placed<float> on_rank_3(std::vector<float> numbers) {
  return {{3, {AxisMap(4, 8, {{0, 4, 3}}), std::move(numbers)}}};
}

TEST_CASE("bits differ where numbers are equal, and are equal where no number is") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueDifference zeros =
      compare_bits(on_rank_3({1, 0.0F, 2, 0}), on_rank_3({1, -0.0F, 2, 0}), 1);
  CHECK(zeros.checked == 3);
  CHECK(zeros.mismatches == 1);
  CHECK(zeros.worst == 0);
  CHECK(zeros.rank == 3);
  CHECK(zeros.token == 0);
  CHECK(zeros.feature == 5);
  const ValueDifference same =
      compare_bits(on_rank_3({1, nan, 2, 0}), on_rank_3({1, nan, 2, 0}), 1);
  CHECK(same.mismatches == 0);
  CHECK(same.has_nan);
}

TEST_CASE("one step of one number is a difference, and padding is none") {
  const float next = std::nextafter(2.0F, 3.0F);
  CHECK(compare_bits(on_rank_3({1, 1, 2, 0}), on_rank_3({1, 1, next, 7}), 1).mismatches == 1);
  CHECK(compare_bits(on_rank_3({1, 1, 2, 0}), on_rank_3({1, 1, 2, 7}), 1).mismatches == 0);
}

TEST_CASE("a device of which nothing is expected is an error") {
  CHECK_ERROR(kUnsupported, compare_bits(Placed<float>(), on_rank_3({1, 1, 2, 0}), 1));
}

}  // namespace
}  // namespace shardtool::engine
