#include "lib/base/dtype.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

using namespace shardtool;

TEST_CASE("every dtype is read as it is printed") {
  std::set<std::string_view> names;
  for (const DtypeInfo& row : dtype_table()) {
    CHECK(parse_dtype(row.name) == row.dtype);
    CHECK(to_string(row.dtype) == row.name);
    CHECK(names.insert(row.name).second);
  }
  CHECK(names.size() == 22);
}

TEST_CASE("names are exact") {
  for (const char* name : {"", "bf16", "BF16 ", "F128", "FLOAT"})
    CHECK(parse_dtype(name) == std::nullopt);
}

TEST_CASE("bits are those of the format") {
  CHECK(bits(Dtype::kBool) == 8);
  CHECK(bits(Dtype::kF4) == 4);
  CHECK(bits(Dtype::kF6E2M3) == 6);
  CHECK(bits(Dtype::kF6E3M2) == 6);
  CHECK(bits(Dtype::kF8E8M0) == 8);
  CHECK(bits(Dtype::kBF16) == 16);
  CHECK(bits(Dtype::kF32) == 32);
  CHECK(bits(Dtype::kC64) == 64);
  CHECK(dtype_info(Dtype::kBF16).kind == DtypeKind::kFloat);
  CHECK(dtype_info(Dtype::kI8).kind == DtypeKind::kSigned);
}

TEST_CASE("a tensor has whole bytes, or no size") {
  CHECK(byte_size(Dtype::kBF16, {14336, 4096}) == 117440512);
  CHECK(byte_size(Dtype::kF32, {}) == 4);
  CHECK(byte_size(Dtype::kF32, {0, 7}) == 0);
  CHECK(byte_size(Dtype::kF4, {3}) == std::nullopt);
  CHECK(byte_size(Dtype::kF4, {4}) == 2);
  CHECK(byte_size(Dtype::kF6E2M3, {4}) == 3);
  CHECK(byte_size(Dtype::kF6E2M3, {6}) == std::nullopt);
}

TEST_CASE("sizes that overflow are refused, whatever the order of the axes") {
  CHECK(byte_size(Dtype::kF64, {i64{1} << 58}) == std::nullopt);
  CHECK(byte_size(Dtype::kF64, {i64{1} << 56}) == i64{1} << 59);
  CHECK(byte_size(Dtype::kU8, {i64{1} << 40, i64{1} << 40}) == std::nullopt);
  CHECK(byte_size(Dtype::kU8, {0, i64{1} << 62, 4}) == std::nullopt);
  CHECK(byte_size(Dtype::kU8, {i64{1} << 62, 4, 0}) == std::nullopt);
}
