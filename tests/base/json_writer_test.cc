#include "lib/base/json_writer.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace shardtool {
namespace {

using nlohmann::json;

json random_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 6 : 4)) {
    case 0:
      return *rc::gen::arbitrary<bool>();
    case 1:
      return *rc::gen::arbitrary<i64>();
    case 2:
      return *rc::gen::string<std::string>();
    case 3:
      return nullptr;
    case 4: {
      json list = json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(random_value(depth - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
        object[*rc::gen::string<std::string>()] = random_value(depth - 1);
      }
      return object;
    }
  }
}

void write(JsonWriter& out, const json& value) {
  if (value.is_boolean()) out.value(value.get<bool>());
  if (value.is_number()) out.value(value.get<i64>());
  if (value.is_string()) out.value(value.get<std::string>());
  if (value.is_null()) out.null();
  if (value.is_array()) {
    out.begin_array();
    for (const auto& item : value) write(out, item);
    out.end_array();
  }
  if (value.is_object()) {
    out.begin_object();
    for (const auto& [key, item] : value.items()) {
      out.key(key);
      write(out, item);
    }
    out.end_object();
  }
}

/// Value after a round trip through a JSON parser: invalid UTF-8 becomes U+FFFD.
json as_parsed(const json& value) {
  return json::parse(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

TEST_CASE("what is written parses to the same value, strings of any bytes included") {
  CHECK(rc::check("round trip", [] {
    const auto value = json::array({random_value(3)});
    std::string text;
    JsonWriter out([&text](std::string_view piece) { text += piece; });
    write(out, value);
    RC_ASSERT(json::parse(text) == as_parsed(value));
    RC_ASSERT(text.back() == '\n');
  }));
}

TEST_CASE("fields stand in the order of the calls, on one line") {
  std::string text;
  JsonWriter out([&text](std::string_view piece) { text += piece; });
  out.begin_object().field("z", 1).field("a", "x").list("list", std::vector<i64>{1, 2});
  out.key("raw").raw("{}").end_object();
  CHECK(text == "{\"z\": 1, \"a\": \"x\", \"list\": [1, 2], \"raw\": {}}\n");
}

TEST_CASE("a number that JSON does not have becomes null") {
  std::string text;
  JsonWriter out([&text](std::string_view piece) { text += piece; });
  out.begin_array().value(0.5).value(1.0 / 0.0).end_array();
  CHECK(text == "[0.5, null]\n");
}

TEST_CASE("a style gives the white space, a container its lines, and inside() no brackets") {
  std::string text;
  JsonWriter out(text, kJsonSpaced);
  out.begin_object({"\n  ", ",\n  ", "\n"})
      .field("a\n", 1)
      .key("none")
      .begin_array({"\n", ",\n", "\n"});
  out.end_array().key("x").exact(0.1234567890123).end_object();
  CHECK(text == "{\n  \"a\\u000a\": 1,\n  \"none\": [],\n  \"x\": 0.1234567890123\n}\n");
  text.clear();
  JsonWriter::inside(text, kJsonCompact).field("a", true).list("b", std::vector<int>{1, 2});
  CHECK(text == "\"a\":true,\"b\":[1,2]");
}

}  // namespace
}  // namespace shardtool
