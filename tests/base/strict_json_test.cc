#include "lib/base/strict_json.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>

#include "lib/base/checked.h"

namespace shardtool {
namespace {

using nlohmann::json;

JsonDocument parse(std::string_view text) {
  return parse_strict_json(text, "m.json", ErrorCode::kMappingSyntax, 16);
}

/// A random tree, at most `depth` deep.
json random_tree(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 8 : 6);
  switch (kind) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::inRange(-1000, 1000) / 8.0;
    case 4:
      return *rc::gen::string<std::string>() == "x" ? "é" : "plain \" text\n";
    case 5:
      return "";
    default:
      break;
  }
  json tree = kind == 6 ? json::array() : json::object();
  const int members = *rc::gen::inRange(0, 4);
  for (int i = 0; i < members; ++i) {
    if (kind == 6) {
      tree.push_back(random_tree(depth - 1));
    } else {
      tree["k/~" + std::to_string(i)] = random_tree(depth - 1);
    }
  }
  return tree;
}

}  // namespace

TEST_CASE("what nlohmann prints is read back equal") {
  CHECK(rc::check("parse after dump", [] {
    const json tree = random_tree(4);
    RC_ASSERT(parse(tree.dump()).value == tree);
    RC_ASSERT(parse(tree.dump(2)).value == tree);
  }));
}

TEST_CASE("the place of every value is where the text has it") {
  CHECK(rc::check("place", [] {
    const json tree = random_tree(3);
    const std::string text = tree.dump(2);
    const JsonDocument document = parse(text);
    const json flat = tree.flatten();
    for (const auto& [pointer, leaf_or_null] : flat.items()) {
      const Place place = document.place(pointer);
      size_t at = 0;
      for (int line = 1; line < place.line; ++line) at = text.find('\n', at) + 1;
      at += static_cast<size_t>(place.column) - 1;
      const std::string leaf = tree.at(json::json_pointer(pointer)).dump();
      RC_ASSERT(text.compare(at, leaf.size(), leaf) == 0);
      RC_ASSERT(place.pointer == pointer);
    }
  }));
}

TEST_CASE("the place of an absent value is that of the nearest enclosing one") {
  const JsonDocument document = parse("{\n  \"a\": {\n    \"b\":   [10,\n 20]\n  }\n}");
  CHECK(document.place("") == Place{"m.json", 1, 1, ""});
  CHECK(document.place("/a/b") == Place{"m.json", 3, 12, "/a/b"});
  CHECK(document.place("/a/b/1") == Place{"m.json", 4, 2, "/a/b/1"});
  CHECK(document.place("/a/missing/x") == Place{"m.json", 2, 8, "/a/missing/x"});
}

TEST_CASE("integers stay exact and what is written as a fraction stays a double") {
  CHECK(parse("9007199254740993").value.get<i64>() == 9007199254740993);
  CHECK(parse("-1").value.is_number_integer());
  CHECK(parse("1.0").value.is_number_float());
  CHECK(parse("1e3").value.is_number_float());
}

TEST_CASE("what is not strict is refused with its place") {
  struct Row {
    std::string text;
    int line;
    int column;
    std::string pointer;
  };
  const std::vector<Row> rows = {
      {"", 1, 1, ""},
      {"{\"a\":1,\n\"a\":2}", 2, 1, "/a"},
      {"{\"a\":{\"b\":1,\"\\u0062\":2}}", 1, 13, "/a/b"},
      {"{\"a\":1} x", 1, 9, ""},
      {std::string("{\"a\":1}\0", 8), 1, 8, ""},
      {"\xef\xbb\xbf{}", 1, 1, ""},
      {"\xff\xfe{", 1, 1, ""},
      {"[1, 18446744073709551616]", 1, 5, "/1"},
      {"[1E400]", 1, 2, "/0"},
      {"[1,]", 1, 3, "/1"},
      {"{\n  // comment\n}", 2, 3, ""},
      {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", 1, 17, "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    try {
      parse(row.text);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kMappingSyntax);
      REQUIRE(error.place());
      CHECK(*error.place() == Place{"m.json", row.line, row.column, row.pointer});
    }
  }
}

}  // namespace shardtool
