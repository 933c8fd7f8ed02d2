#include "lib/mapping/document/document.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the decoder's verdict on every document of the table is the one that is listed") {
  const auto rows =
      nlohmann::json::parse(read(SHARDTOOL_SOURCE_DIR "/tests/mapping/verdicts.json"));
  REQUIRE(rows.size() > 150);
  for (const auto& row : rows) {
    const std::string what = row["what"];
    CAPTURE(what);
    const auto e = error_of([&] { return decode_document(row["document"].dump(), "m.json"); });
    CHECK(e.has_value() != row["accept"].get<bool>());
    if (!e) continue;
    CHECK((e->code() == ErrorCode::kMappingSchema || e->code() == ErrorCode::kUnknownName));
    REQUIRE(e->place());
    CHECK(e->place()->line == 1);
  }
}

TEST_CASE("text that is no strict JSON is refused with its place") {
  for (const std::string text :
       {"", "{", "{\"version\": 1,}", "// x\n{\"version\": 1}", "\xef\xbb\xbf{\"version\": 1}",
        "{\"version\": 1} x", "{\"version\": 1, \"version\": 1}", "{\"version\": NaN}"}) {
    CAPTURE(text);
    const auto e = error_of([&] { return decode_document(text, "m.json"); });
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kMappingSyntax);
    CHECK(e->place()->file == "m.json");
  }
}

TEST_CASE("nesting has an end") {
  const std::string deep =
      "{\"version\": 1, \"rules\": " + std::string(1000, '[') + std::string(1000, ']') + "}";
  CHECK_ERROR(kMappingSyntax, decode_document(deep, "m.json"));
}

TEST_CASE("a long list of owners takes no time per pair of units, and has none twice") {
  constexpr int kUnits = 200'000;
  std::string units = "0";
  for (int unit = 1; unit < kUnits; ++unit) units += fmt::format(",{}", unit);
  const auto decoded = [&](const std::string& last) {
    return decode_document(
        fmt::format(R"({{"version": 1, "axes": {{"a": {{"owners": [[{}{}]]}}}}}})", units, last),
        "m.json");
  };
  const std::clock_t start = std::clock();
  CHECK(decoded("").axes.at("a").owners->lists.front().size() == kUnits);
  CHECK(std::clock() - start < 5 * CLOCKS_PER_SEC);
  CHECK(error_of([&] { decoded(",77"); })->code() == ErrorCode::kMappingSchema);
}

TEST_CASE("an unknown key is named with its line and column, and the key that was meant") {
  const auto e = error_of([] {
    return decode_document(
        "{\n  \"version\": 1,\n  \"rules\": [\n    {\"match\": \"a\", \"strateg\": \"rowwise\"}\n  "
        "]\n}",
        "m.json");
  });
  REQUIRE(e);
  CHECK(e->place() == Place{"m.json", 4, 20, "/rules/0/strateg"});
  CHECK(e->message() == "\"rules/0\" has an unknown key 'strateg'");
  CHECK(e->help_lines().front() == "did you mean 'strategy'?");
}

TEST_CASE("a segment of heads that is mistyped is told the keys of heads") {
  const auto e = error_of([] {
    return decode_document(R"({"version": 1, "rules": [{"match": "a", "strategy":
      {"type": "segmented", "segments": [{"heads": 24}, {"heads": 24}]}}]})",
                           "m.json");
  });
  REQUIRE(e);
  CHECK(e->notes()[0].second == "num_heads, head_dim");
}

TEST_CASE("a wrong word is named with the words that are known") {
  const auto e = error_of([] {
    return decode_document(R"({"version": 1, "rules": [{"match": "a", "strategy": "rowise"}]})",
                           "m.json");
  });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kUnknownName);
  CHECK(e->help_lines().front() == "did you mean 'rowwise'?");
}

TEST_CASE("a strategy that does not pad has no multiple to pad to") {
  const auto e = error_of([] {
    return decode_document(R"({"version": 1, "rules": [{"match": "a", "strategy":
     {"type": "rowwise", "pad_to": 64}}]})",
                           "m.json");
  });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kMappingSchema);
  CHECK(e->message() == "the strategy 'rowwise' has \"pad_to\" without \"uneven\": \"pad\"");
  CHECK(e->place() == Place{"m.json", 2, 36, "/rules/0/strategy/pad_to"});
  CHECK(e->help_lines().front() == "add \"uneven\": \"pad\", or leave \"pad_to\" out");
}

TEST_CASE("a wrong type says what was found and what was expected") {
  const auto e = error_of([] {
    return decode_document(R"({"version": 1, "axes": {"x": {"pad_to": 64.0}}})", "m.json");
  });
  REQUIRE(e);
  CHECK(e->message() == "\"axes/x/pad_to\" must be an integer of 1 or more");
  CHECK(e->notes()[0].second == "64.0");
}

TEST_CASE("rules keep their place, their id or position, and every pattern") {
  const Document document = decode_document(R"({"version": 1, "rules": [
    {"match": ["a", "b.{c,d}"], "strategy": "replicate"},
    {"id": "q", "regex": "x.*", "dims": [null]}]})",
                                            "m.json");
  CHECK(document.rules[0].label == "rules/0");
  CHECK(document.rules[0].patterns.size() == 2);
  CHECK(document.rules[1].label == "q");
  CHECK(document.rules[1].place == Place{"m.json", 3, 5, "/rules/1"});
}

}  // namespace
}  // namespace shardtool::mapping
