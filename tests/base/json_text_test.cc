#include "lib/base/json_text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json_reader.h"

namespace shardtool {

TEST_CASE("strings round trip through json_quote") {
  CHECK(rc::check("round trip", [](const std::vector<std::uint32_t>& raw) {
    std::string text;
    for (const std::uint32_t code : raw) text += static_cast<char>(code % 0x80);
    text += "é😀";
    const std::string quoted = json_quote(text);
    JsonReader in(quoted, {}, 0);
    RC_ASSERT(in.string() == text);
  }));
}

TEST_CASE("what has to be escaped is, wherever it stands in a name") {
  const std::string name = "model.layers.17.\xc3\xa9.mlp.\x7f.weight";
  for (const auto& [special, escaped] : std::vector<std::pair<std::string, std::string>>{
           {"\"", "\\\""}, {"\\", "\\\\"}, {"\x1f", "\\u001f"}, {{'\0'}, "\\u0000"}, {"", ""}}) {
    for (size_t at = 0; at <= name.size(); ++at) {
      std::string text = name;
      std::string wanted = name;
      CHECK(json_quote(text.insert(at, special)) == '"' + wanted.insert(at, escaped) + '"');
    }
  }
}

TEST_CASE("integers are written as JSON reads them") {
  CHECK(rc::check("round trip", [](const std::vector<i64>& numbers) {
    std::string text;
    append_json_integers(text, numbers);
    JsonReader in(text, {}, 1);
    std::vector<i64> again;
    for (in.begin_array(); in.next_element();) again.push_back(in.integer());
    in.finish();
    RC_ASSERT(again == numbers);
  }));
  std::string text = "x";
  append_json_integers(text, std::vector<i64>{INT64_MIN, 0, INT64_MAX});
  CHECK(text == "x[-9223372036854775808,0,9223372036854775807]");
}

}  // namespace shardtool
