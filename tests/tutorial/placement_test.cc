#include "lib/tutorial/placement.h"

#include <doctest/doctest.h>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

TEST_CASE("what the ranks hold, put together, is the array, in every placement") {
  CHECK(rc::check("assembled(cut) = whole", [] {
    const auto devices = static_cast<int>(*gen::between(1, 5));
    const auto whole = random_matrix<Field>(*gen::between(0, 8), *gen::between(0, 8), 1);
    const MatrixPlacement placement = *rc::gen::element(
        replicated(), rows(parts_or_nothing(whole.rows(), devices)),
        columns(parts_or_nothing(whole.columns(), devices)), owned_by(devices - 1));
    std::vector<Matrix<Field>> held;
    for (int device = 0; device < devices; ++device) held.push_back(cut(whole, placement, device));
    RC_ASSERT(assembled(held, placement) == whole);
  }));
}

TEST_CASE("ten units over four devices are 3, 3, 2 and 2, and no unit is left out") {
  CHECK(parts_of("units", 10, 4) == Parts{{0, 3}, {3, 6}, {6, 8}, {8, 10}});
  CHECK(parts_of("units", 10, 4, layout::kCeil) == Parts{{0, 3}, {3, 6}, {6, 9}, {9, 10}});
}

TEST_CASE("a device that would hold nothing is an error that names it and what it lacks") {
  const auto error = testing::error_of([] { return parts_of("hidden units", 3, 4); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kEmptyShard);
  CHECK(error->message() == "rank 3 of 4 would hold none of the 3 hidden units");
  CHECK(error->help_lines() == std::vector<std::string>{"use at most 3 devices"});
  // Nine units by ceil are 3, 3, 3 and 0, although there are more units than devices.
  CHECK_ERROR(kEmptyShard, parts_of("output features", 9, 4, layout::kCeil));
  CHECK(parts_or_nothing(2, 3) == Parts{{0, 1}, {1, 2}, {2, 2}});
}

}  // namespace
