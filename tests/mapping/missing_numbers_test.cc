#include "lib/mapping/resolve/missing_numbers.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace shardtool::mapping {

TEST_CASE("the missing numbers are those that a count from 0 does not find") {
  CHECK(rc::check("missing", [](const std::set<i64>& present) {
    const i64 size = *rc::gen::inRange<i64>(-2, 40);
    std::vector<i64> wanted;
    for (i64 number = 0; number < size; ++number) {
      if (!present.contains(number)) wanted.push_back(number);
    }
    const MissingNumbers missing = missing_numbers(present, size);
    RC_ASSERT(missing.count == std::ssize(wanted));
    wanted.resize(std::min<size_t>(wanted.size(), 5));
    RC_ASSERT(missing.first == wanted);
  }));
}

TEST_CASE("a size of 10^18 costs what is present") {
  const MissingNumbers missing = missing_numbers({0, 2, 3}, 1'000'000'000'000'000'000);
  CHECK(missing.count == 999'999'999'999'999'997);
  CHECK(to_string(missing) == "1, 4, 5, 6, 7 and 999999999999999992 more");
}

}  // namespace shardtool::mapping
