#include "lib/plan/collective/time_table.h"

#include <doctest/doctest.h>

using namespace shardtool;
using doctest::Approx;

TEST_CASE("a table is interpolated in log-log, its ends are a latency and a bandwidth") {
  const plan::TimeTable table{{1000, 10}, {100'000, 40}};
  CHECK(plan::us_at(table, 1) == 10);
  CHECK(plan::us_at(table, 1000) == 10);
  CHECK(plan::us_at(table, 10'000) == Approx(20));  // halfway in both logarithms
  CHECK(plan::us_at(table, 100'000) == Approx(40));
  CHECK(plan::us_at(table, 1'000'000) == Approx(400));
  CHECK(plan::bytes_per_s(table) == Approx(2.5e9));
}

TEST_CASE("measured points become a table whose times do not fall") {
  CHECK(plan::rising({{64, 3}, {16, 5}, {256, 9}}) == plan::TimeTable{{16, 5}, {64, 5}, {256, 9}});
}
