#include "lib/base/shape.h"

#include <doctest/doctest.h>

#include <limits>

#include "lib/base/checked.h"

using namespace shardtool;

TEST_CASE("a shape has the product of its extents, and a scalar one element") {
  CHECK(element_count({4096, 14336}) == 58720256);
  CHECK(element_count({}) == 1);
  CHECK(element_count({5, 0, 3}) == 0);
}

TEST_CASE("the verdict on overflow does not depend on the order of the axes") {
  constexpr i64 kBig = i64{1} << 62;
  CHECK(element_count({0, kBig, 4}) == std::nullopt);
  CHECK(element_count({kBig, 4, 0}) == std::nullopt);
  CHECK(element_count({kBig, 0}) == 0);
  CHECK(element_count({kBig, 1}) == kBig);
}

TEST_CASE("shapes print as lists") {
  CHECK(to_string(Shape{4096, 14336}) == "[4096, 14336]");
  CHECK(to_string(Shape{7}) == "[7]");
  CHECK(to_string(Shape{}) == "[]");
}

TEST_CASE("checked arithmetic gives the result, or nothing") {
  constexpr i64 kMax = std::numeric_limits<i64>::max();
  CHECK(checked_add(kMax - 1, 1) == kMax);
  CHECK(checked_add(kMax, 1) == std::nullopt);
  CHECK(checked_mul(i64{1} << 31, i64{1} << 31) == i64{1} << 62);
  CHECK(checked_mul(i64{1} << 32, i64{1} << 31) == std::nullopt);
  CHECK(checked_mul(kMax, -1) == -kMax);
}

TEST_CASE("rounding up is exact at the ends of the range") {
  constexpr i64 kMax = std::numeric_limits<i64>::max();
  CHECK(ceil_div(0, 3) == 0);
  CHECK(ceil_div(9, 3) == 3);
  CHECK(ceil_div(10, 3) == 4);
  CHECK(ceil_div(kMax, 2) == (i64{1} << 62));
  CHECK(round_up(50257, 64) == 50304);
  CHECK(round_up(50304, 64) == 50304);
}
