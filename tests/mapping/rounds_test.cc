// Units that are dealt to ranks in rounds.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

/// Intervals of an axis of n units over tp with these owners.
Held dealt_units(i64 n, i64 parts, const std::string& owners) {
  const Mapping mapping = mapping_of(
      fmt::format(R"({{"version": 1, "axes": {{"x": {{"mesh": "tp", "owners": {}}}}},
                       "rules": [{{"match": "w", "dims": ["x"]}}]}})",
                  owners));
  return only(mapping, spec("w", {n}), nullptr, over(fmt::format("tp={}", parts)));
}

TEST_CASE("rounds deal equal runs of units to all parts, and again to all parts") {
  CHECK(dealt_units(8, 2, R"({"rounds": 2})") == Held{"[0, 2) [4, 6)", "[2, 4) [6, 8)"});
  CHECK(rc::check("parts, rounds and units of a run", [] {
    const i64 parts = *rc::gen::inRange<i64>(1, 5);
    const i64 rounds = *rc::gen::inRange<i64>(1, 5);
    const i64 each = *rc::gen::inRange<i64>(1, 4);
    const i64 n = parts * rounds * each;
    std::vector<std::vector<i64>> lists(static_cast<size_t>(parts));
    for (i64 unit = 0; unit < n; ++unit)
      lists[static_cast<size_t>(unit / each % parts)].push_back(unit);
    const Held found = dealt_units(n, parts, fmt::format(R"({{"rounds": {}}})", rounds));
    RC_ASSERT(found == dealt_units(n, parts, fmt::format("{}", lists)));
    if (rounds == 1) RC_ASSERT(found == dealt_units(n, parts, R"("contiguous")"));
    if (each == 1) RC_ASSERT(found == dealt_units(n, parts, R"("round_robin")"));
  }));
}

TEST_CASE("runs that rounds deal differ as the policy for uneven cuts says, and none is empty") {
  const auto dealt = [](const std::string& policy) {
    return dealt_units(6, 2, R"({"rounds": 2}, "uneven": ")" + policy + "\"");
  };
  CHECK(dealt("balanced") == Held{"[0, 2) [4, 5)", "[2, 4) [5, 6)"});
  CHECK(dealt("middle") == Held{"[0, 1) [3, 5)", "[1, 3) [5, 6)"});
  CHECK_ERROR(kNotDivisible, dealt("error"));
  CHECK_ERROR(kNotDivisible, dealt("chunk"));  // 2, 2, 2 and nothing
  CHECK_ERROR(kNotDivisible, dealt_units(7, 2, R"({"rounds": 4})"));
  CHECK_ERROR(kNotDivisible, dealt_units(7, 2, R"({"rounds": 9223372036854775807})"));
}

}  // namespace
}  // namespace shardtool::mapping
