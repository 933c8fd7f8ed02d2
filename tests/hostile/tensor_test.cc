// Catalogue of bad input, rows C: the meaning of a header entry.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/hostile/verdict.h"

namespace shardtool {
namespace {

using test::refusal_of_header;
using test::says;

std::string typed_entry(const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"the.tensor\":" + typed_entry(dtype, shape, offsets) + "}";
}

std::string two(const std::string& a_offsets, const std::string& b_offsets) {
  return "{\"a\":" + typed_entry("\"U8\"", "[4]", a_offsets) +
         ",\"b\":" + typed_entry("\"U8\"", "[4]", b_offsets) + "}";
}

struct TensorRow {
  std::string id;
  std::string json;
  size_t data;
  std::string said;
};

}  // namespace

TEST_CASE("an entry that means nothing sensible is refused with the tensor's name") {
  const std::vector<TensorRow> rows = {
      {"C01 unknown", one("\"F31\"", "[1]", "[0,4]"), 4, "did you mean 'F32'"},
      {"C01 lower case", one("\"bf16\"", "[1]", "[0,2]"), 2, "the dtype is unknown"},
      {"C01 a number", one("32", "[1]", "[0,4]"), 4, "expected: a string"},
      {"C01 missing", R"({"the.tensor":{"shape":[1],"data_offsets":[0,1]}})", 1,
       "'dtype' is missing"},
      {"C03 missing", R"({"the.tensor":{"dtype":"U8","data_offsets":[0,1]}})", 1,
       "'shape' is missing"},
      {"C03 null", one("\"U8\"", "null", "[0,1]"), 1, "expected: an array"},
      {"C03 object", one("\"U8\"", "{}", "[0,1]"), 1, "expected: an array"},
      {"C04", one("\"U8\"", "[-4]", "[0,4]"), 4, "found: -4"},
      {"C06 wraps to 0", one("\"F64\"", "[2305843009213693952]", "[0,0]"), 0, "below 2^63"},
      {"C06 product", one("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "below 2^63"},
      {"C06 hidden by 0", one("\"U8\"", "[0,9223372036854775807,9223372036854775807]", "[0,0]"), 0,
       "below 2^63"},
      {"C06 0 last", one("\"U8\"", "[9223372036854775807,9223372036854775807,0]", "[0,0]"), 0,
       "below 2^63"},
      {"C08 too few", one("\"F32\"", "[2]", "[0,4]"), 4, "expected: 8 bytes for F32 [2]"},
      {"C08 too many", one("\"F32\"", "[2]", "[0,9]"), 9, "found: [0, 9], 9 bytes"},
      {"C09 backwards", one("\"U8\"", "[1]", "[2,1]"), 2, "end before they begin"},
      {"C12 one", one("\"U8\"", "[0]", "[0]"), 0, "1 values"},
      {"C12 three", one("\"U8\"", "[1]", "[0,1,1]"), 1, "3 values"},
      {"C12 object", one("\"U8\"", "[1]", "{}"), 1, "expected: an array"},
      {"C12 missing", R"({"the.tensor":{"dtype":"U8","shape":[1]}})", 1,
       "'data_offsets' is missing"},
      {"C21", one("\"F4\"", "[3]", "[0,2]"), 2, "whole number of bytes"},
      {"no object", R"({"the.tensor":[]})", 0, "expected: an object"},
  };
  for (const TensorRow& row : rows) {
    CAPTURE(row.id);
    const Error error = refusal_of_header(row.json, row.data);
    CHECK(error.exit_status() == 4);
    CHECK(error.tensor_name() == "the.tensor");
    CHECK(says(error, row.said));
    CHECK(says(error, "byte offset"));
  }
}

TEST_CASE("tensors that do not tile the data are refused with both of them") {
  const std::string zero = R"(,"z":{"dtype":"U8","shape":[0],"data_offsets":)";
  const std::string four = "{\"a\":" + typed_entry("\"U8\"", "[4]", "[0,4]");
  const std::vector<TensorRow> rows = {
      {"C09 beyond the end", two("[0,4]", "[4,8]"), 7, "ends before its data"},
      {"C10 overlap", two("[0,4]", "[2,6]"), 8, "overlaps 'a' [0, 4)"},
      {"C10 alias", two("[0,4]", "[0,4]"), 4, "overlaps 'a' [0, 4)"},
      {"C11 hole", two("[0,4]", "[6,10]"), 10, "hole between 'a' [0, 4)"},
      {"C11 begins at 4", two("[4,8]", "[8,12]"), 12, "hole between the data's begin"},
      {"C15 inside", four + zero + "[2,2]}}", 4, "'a' [0, 4)"},
      {"C15 after", four + zero + "[9,9]}}", 4, "hole between"},
  };
  for (const TensorRow& row : rows) {
    CAPTURE(row.id);
    const Error error = refusal_of_header(row.json, row.data);
    CHECK(error.exit_status() == 4);
    CHECK_FALSE(error.tensor_name().empty());
    CHECK(says(error, row.said));
  }
}

TEST_CASE("C02 every dtype of the format is read") {
  for (const DtypeInfo& row : dtype_table()) {
    CAPTURE(row.name);
    const auto bytes = static_cast<size_t>(row.bits);
    const auto checkpoint = test::open_header(
        one('"' + std::string(row.name) + '"', "[8]", "[0," + std::to_string(bytes) + "]"), bytes);
    CHECK(checkpoint.tensors[0].dtype == row.dtype);
    CHECK(checkpoint.tensors[0].bytes == row.bits);
  }
}

TEST_CASE("C13 C14 C16 C17 C18 odd but legal tensors are read") {
  CHECK(test::open_header(one("\"F32\"", "[]", "[0,4]"), 4).tensors[0].shape.empty());

  const std::string zeros = "{\"a\":" + typed_entry("\"U8\"", "[4]", "[0,4]") +
                            ",\"z\":" + typed_entry("\"F32\"", "[3,0]", "[4,4]") +
                            ",\"b\":" + typed_entry("\"U8\"", "[4]", "[4,8]") + "}";
  const auto with_zeros = test::open_header(zeros, 8);
  REQUIRE(with_zeros.tensors.size() == 3);
  CHECK(with_zeros.tensors[1].name == "z");
  CHECK(with_zeros.tensors[1].bytes == 0);

  std::string ones = "[1";
  for (int i = 1; i < 10'000; ++i) ones += ",1";
  CHECK(test::open_header(one("\"U8\"", ones + "]", "[0,1]"), 1).tensors[0].shape.size() == 10'000);

  const std::string odd = one("\"F64\"", "[1]", "[0,8]") + std::string(1, ' ');
  CHECK(test::open_header(odd, 8).tensors[0].offset == static_cast<i64>(8 + odd.size()));

  const std::string unaligned = "{\"a\":" + typed_entry("\"U8\"", "[1]", "[0,1]") +
                                ",\"b\":" + typed_entry("\"F32\"", "[1]", "[1,5]") + "}";
  CHECK(test::open_header(unaligned, 5).tensors[1].offset ==
        static_cast<i64>(9 + unaligned.size()));
}

}  // namespace shardtool
