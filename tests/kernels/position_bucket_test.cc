#include <doctest/doctest.h>

#include "kernels/ops/attend.h"
#include "tests/golden/tables.h"

using namespace shardtool;

TEST_CASE("every distance is in the bucket that the library puts it in") {
  const auto& tables = golden::function_tables().position_buckets;
  CHECK(tables.size() == 5);
  for (const auto& table : tables) {
    CAPTURE(table.buckets);
    CAPTURE(table.most_distance);
    CAPTURE(table.two_sided);
    std::vector<i64> found;
    for (i64 i = 0; i < std::ssize(table.of); ++i) {
      found.push_back(kernels::position_bucket(table.first + i, table.buckets,
                                               static_cast<double>(table.most_distance),
                                               table.two_sided));
    }
    CHECK(found == table.of);
  }
}

TEST_CASE("every distance to either side is in the bucket that the library puts it in") {
  const auto& tables = golden::function_tables().signed_buckets;
  CHECK(tables.size() == 4);
  for (const auto& table : tables) {
    CAPTURE(table.buckets);
    CAPTURE(table.most_distance);
    std::vector<i64> found;
    for (i64 i = 0; i < std::ssize(table.of); ++i) {
      found.push_back(kernels::signed_bucket(table.first + i, table.buckets,
                                             static_cast<double>(table.most_distance)));
    }
    CHECK(found == table.of);
  }
}
