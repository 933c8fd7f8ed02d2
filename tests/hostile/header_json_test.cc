// Catalogue of bad input, rows B: the header's JSON.
#include <doctest/doctest.h>

#include <ctime>
#include <string>
#include <vector>

#include "lib/format/safetensors/safetensors.h"
#include "tests/hostile/verdict.h"

namespace shardtool {
namespace {

using test::refusal_of_header;
using test::says;

/// An entry of one byte with the given texts for shape, offsets and dtype.
std::string entry(const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "\"U8\"") {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one_tensor(const std::string& name_as_written) {
  return "{" + name_as_written + ":" + entry("[1]", "[0,1]") + "}";
}

/// Processor time in seconds, independent of other load on the machine.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("B01 B02 B06 B07 B08 B17 B19 what is not strict JSON is refused") {
  const std::string valid = one_tensor("\"a\"");
  const std::vector<std::string> rows = {
      one_tensor("\"\xff\""),
      one_tensor("\"\xed\xa0\x80\""),
      "\xef\xbb\xbf" + valid,
      valid + "x",
      valid + valid,
      valid + std::string(8, '\0'),
      "[]",
      "null",
      "\"x\"",
      "{\"a\":" + entry("[1]", "[0,1]") + ",}",
      "{/* comment */}",
      "{'a':1}",
      "{\"a\":NaN}",
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,],\"data_offsets\":[0,1]}}",
      one_tensor(R"("\ud83d")"),
      one_tensor(R"("\ude00")"),
      one_tensor(R"("\x")"),
      one_tensor("\"a\nb\""),
  };
  for (const std::string& json : rows) {
    CAPTURE(json);
    CHECK(refusal_of_header(json, 1).code() == ErrorCode::kHeaderJson);
  }
}

TEST_CASE("B03 whitespace before the object is accepted") {
  CHECK(test::open_header(" \t\r\n" + one_tensor("\"a\"") + "   ", 1).tensors.size() == 1);
}

TEST_CASE("B09 B10 B12 B13 what stands twice is refused and named, also when escaped") {
  struct Row {
    std::string json;
    std::string named;
  };
  const std::string metadata = R"("__metadata__":{"k":"v"})";
  const std::vector<Row> rows = {
      {"{\"a\":" + entry("[0]", "[0,0]") + ",\"a\":" + entry("[0]", "[0,0]") + "}", "occurs twice"},
      {"{\"a\":" + entry("[0]", "[0,0]") + ",\"\\u0061\":" + entry("[0]", "[0,0]", "\"F32\"") + "}",
       "occurs twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]}})", "found: shape"},
      {R"({"a":{"dtype":"U8","shape":[0],"x":1,"\u0078":1,"data_offsets":[0,0]}})", "found: x"},
      {"{" + metadata + "," + metadata + "}", "__metadata__"},
      {R"({"__metadata__":{"k":"v","k":"v"}})", "found: k"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.json);
    const Error error = refusal_of_header(row.json, 0);
    CHECK(error.exit_status() == 4);
    CHECK(says(error, row.named));
  }
}

TEST_CASE("B14 B15 metadata is text to text, or null") {
  for (const char* value : {"1", "{}", "[]", "null", "true"}) {
    CAPTURE(value);
    const std::string json = R"({"__metadata__":{"k":)" + std::string(value) + "}}";
    CHECK(refusal_of_header(json, 0).code() == ErrorCode::kHeaderJson);
  }
  CHECK(refusal_of_header(R"({"__metadata__":[]})", 0).code() == ErrorCode::kHeaderJson);
  CHECK(test::open_header(R"({"__metadata__":null})", 0).tensors.empty());
}

TEST_CASE("B16 an unknown field is a warning") {
  const auto checkpoint = test::open_header(
      R"({"a":{"dtype":"U8","strides":[{"x":1e400}],"shape":[1],"data_offsets":[0,1]}})", 1);
  REQUIRE(checkpoint.warnings.size() == 1);
  CHECK(checkpoint.warnings[0].message == "unknown field 'strides' in 1 tensor entries is ignored");
}

TEST_CASE("B17 100,000 nested arrays in an unknown field are refused at once") {
  const auto begin = std::clock();
  const Error error = refusal_of_header(R"({"a":{"x":)" + std::string(100'000, '['), 1);
  CHECK(error.code() == ErrorCode::kHeaderJson);
  CHECK(seconds_since(begin) < 0.1);
}

TEST_CASE("B20 B22 B23 names are data: empty, paths, a megabyte") {
  CHECK(test::open_header(one_tensor("\"\""), 1).tensors[0].name.empty());
  CHECK(test::open_header(one_tensor("\"../../x\""), 1).tensors[0].name == "../../x");
  CHECK(test::open_header(one_tensor("\"/etc/x\""), 1).tensors[0].name == "/etc/x");
  const std::string name(1 << 20, 'n');
  CHECK(test::open_header(one_tensor("\"" + name + "\""), 1).tensors[0].name == name);
  const Error error = refusal_of_header("{\"" + name + "\":" + entry("[2]", "[0,1]") + "}", 1);
  CHECK(error.tensor_name().size() < 300);
  CHECK(error.place()->pointer.size() < 300);
  CHECK(test::everything(error).size() < 1000);
}

TEST_CASE("control characters of names are escaped in messages") {
  const Error error = refusal_of_header("{\"a\\u001b[31m\":" + entry("[2]", "[0,1]") + "}", 1);
  CHECK(error.tensor_name() == "a\\x1b[31m");
}

TEST_CASE("B24 1.4 million overlapping tensors are refused quickly") {
  std::string json = "{";
  for (int i = 0; i < 1'400'000; ++i) {
    if (i > 0) json += ',';
    json += '"' + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  }
  json += "}";
  const auto begin = std::clock();
  CHECK_THROWS_AS(format::safetensors::parse_header(json, static_cast<i64>(9 + json.size()), "f"),
                  Error);
  CHECK(seconds_since(begin) < 1.0);
}

TEST_CASE("B25 many tiny tensors are read in linear time") {
  const auto seconds_for = [](int tensors) {
    std::string json = "{";
    for (int i = 0; i < tensors; ++i) {
      if (i > 0) json += ',';
      json += '"' + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
    }
    json += "}";
    const auto begin = std::clock();
    const auto header =
        format::safetensors::parse_header(json, static_cast<i64>(8 + json.size()) + tensors, "f");
    CHECK(header.entries.size() == static_cast<size_t>(tensors));
    return seconds_since(begin);
  };
  const double few = seconds_for(20'000);
  CHECK(seconds_for(200'000) < 30 * few + 0.1);
}

TEST_CASE("B28 sizes are integers of 64 bits, written as such") {
  for (const char* number :
       {"4.0", "4e0", "\"4\"", "true", "null", "-1", "-0", "01", "1E400", "18446744073709551616",
        "9223372036854775808", "[4]", "+4", "0x4", ".5"}) {
    CAPTURE(number);
    const std::string text = number;
    CHECK(refusal_of_header("{\"a\":" + entry("[" + text + "]", "[0,4]") + "}", 4).exit_status() ==
          4);
    CHECK(refusal_of_header("{\"a\":" + entry("[4]", "[0," + text + "]") + "}", 4).exit_status() ==
          4);
    CHECK(refusal_of_header("{\"a\":" + entry("[4]", "[" + text + ",4]") + "}", 4).exit_status() ==
          4);
  }
}

TEST_CASE("an error in the JSON has its byte offset in the file") {
  const Error error = refusal_of_header("{\"a\":x}", 0);
  CHECK(says(error, "byte offset: 13"));
  CHECK(error.place()->pointer == "/a");
}

}  // namespace shardtool
