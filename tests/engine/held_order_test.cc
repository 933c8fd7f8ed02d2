#include "lib/engine/run/held_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace shardtool::engine {
namespace {

/// Axis of a q projection with eight heads of four rows.
AxisWords heads() {
  return {"row", {{{0, 32}, "", "head", 4}}};
}
/// Fused axis: q of four heads, k and v of two, four rows per head.
AxisWords fused() {
  return {
      "row",
      {{{0, 16}, "q", "head", 4}, {{16, 24}, "k", "kv head", 4}, {{24, 32}, "v", "kv head", 4}}};
}

std::vector<i64> globals(const index::AxisMap& map) {
  std::vector<i64> numbers;
  for (i64 l = 0; l < map.local_size(); ++l) numbers.push_back(map(l).value_or(-1));
  return numbers;
}

index::AxisMap rows(i64 begin, i64 end) {
  return index::AxisMap::slice(32, {begin, end});
}

struct Case {
  std::string what;
  index::AxisMap expected;
  std::vector<i64> held;
  std::string words;
};

std::string told(const Case& row, const AxisWords& words) {
  const HeldOrder order{1, row.expected, row.held, {{0, rows(0, 8)}, {1, rows(8, 16)}}};
  return describe(order, words).value_or("nothing");
}

TEST_CASE("what rows of heads hold is told in the largest words that fit") {
  const auto from = [](std::vector<i64> order) { return order; };
  const std::vector<Case> cases{
      {"all in place", rows(8, 16), globals(rows(8, 16)), "nothing"},
      {"another rank's part", rows(8, 16), globals(rows(0, 8)), "holds the shard of rank 0"},
      {"two heads", rows(8, 16), from({12, 13, 14, 15, 8, 9, 10, 11}),
       "head 2 holds head 3, head 3 holds head 2"},
      {"one head twice", rows(8, 16), from({8, 9, 10, 11, 8, 9, 10, 11}), "head 3 holds head 2"},
      {"a single head", rows(8, 12), globals(rows(20, 24)), "head 2 holds head 5"},
      {"one row on", rows(8, 16), globals(rows(9, 17)), "rows are shifted by +1"},
      {"two rows back", rows(8, 16), globals(rows(6, 14)), "rows are shifted by -2"},
      {"one row twice", rows(8, 16), from({8, 9, 10, 11, 12, 13, 14, 14}), "row 15 holds row 14"},
      {"evens first", rows(8, 16), from({8, 10, 9, 11, 12, 14, 13, 15}),
       "rows of every head are in halves instead of interleaved"},
      {"mostly unknown", rows(8, 16), from({9, -1, -1, -1, -1, -1, -1, -1}), "nothing"},
      {"the last row unknown", rows(8, 16), from({9, 10, 11, 12, 13, 14, 15, -1}),
       "rows are shifted by +1"},
  };
  for (const Case& row : cases) {
    CAPTURE(row.what);
    CHECK(told(row, heads()) == row.words);
  }
}

TEST_CASE("sections of a fused axis go by their names") {
  const index::AxisMap whole = rows(0, 32);
  std::vector<i64> k_and_v = globals(whole);
  std::swap_ranges(k_and_v.begin() + 16, k_and_v.begin() + 24, k_and_v.begin() + 24);
  CHECK(told({"", whole, k_and_v, ""}, fused()) == "k holds v, v holds k");

  std::vector<i64> one_head = globals(whole);
  std::swap_ranges(one_head.begin() + 16, one_head.begin() + 20, one_head.begin() + 28);
  CHECK(told({"", whole, one_head, ""}, fused()) ==
        "k head 0 holds v head 1, v head 1 holds k head 0");

  const index::AxisMap part(16, 32, {{0, 0, 8}, {8, 16, 4}, {12, 24, 4}});
  CHECK(told({"", part, globals(rows(0, 16)), ""}, fused()) ==
        "holds rows [0, 16) instead of [0, 8) [16, 20) [24, 28)");
}

TEST_CASE("many rows in another order are counted") {
  std::vector<i64> order = globals(rows(0, 32));
  std::reverse(order.begin(), order.end());
  const AxisWords plain{"row", {{{0, 32}, "", "row", 1}}};
  CHECK(
      told({"", rows(0, 32), order, ""}, plain) ==
      "row 0 holds row 31, row 1 holds row 30, row 2 holds row 29, row 3 holds row 28 and 28 more "
      "are elsewhere");
}

}  // namespace
}  // namespace shardtool::engine
