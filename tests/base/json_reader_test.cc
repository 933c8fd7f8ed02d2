#include "lib/base/json_reader.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shardtool {
namespace {

using namespace std::string_literals;

constexpr int kDepth = 8;

/// Reference implementation: nlohmann's SAX parser made strict. Numbers keep JSON's grammar; it
/// rejects everything that JsonReader must reject, by independent code.
class Reference : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// Returns nullopt for a number beyond a double, which the reference cannot judge.
  static std::optional<bool> accepts(const std::string& text) {
    if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != std::string::npos) return false;
    Reference handler;
    const bool accepted = nlohmann::json::sax_parse(text, &handler);
    return handler.is_beyond_ ? std::nullopt : std::optional(accepted);
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDepth; }
  bool start_array(std::size_t) override { return ++depth_ <= kDepth; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    is_beyond_ = error.id == kNumberOverflow;
    return false;
  }

 private:
  int depth_ = 0;
  bool is_beyond_ = false;
};

bool skips(const std::string& text) {
  try {
    JsonReader in(text, {"f.json", ErrorCode::kHeaderJson}, kDepth);
    in.skip();
    in.finish();
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kHeaderJson);
    return false;
  }
}

template <typename Read>
Error error_of(const std::string& text, Read read) {
  JsonReader in(text, {"f.json", ErrorCode::kHeaderJson, 8}, kDepth);
  try {
    read(in);
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown for " << text);
  return Error(ErrorCode::kInternal, "unreachable");
}

std::string note(const Error& error, std::string_view label) {
  for (const auto& [name, text] : error.notes()) {
    if (name == label) return text;
  }
  return "";
}

}  // namespace

TEST_CASE("a text is accepted exactly when the reference accepts it") {
  const std::vector<std::string> tokens = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"a\"",
                                           "\"\"",
                                           "0",
                                           "-0",
                                           "1.5",
                                           "01",
                                           "1e5",
                                           "-",
                                           "1.",
                                           ".5",
                                           "+1",
                                           "true",
                                           "false",
                                           "null",
                                           "nul",
                                           " ",
                                           "\n",
                                           "\t",
                                           "\f",
                                           "\"\\u00e9\"",
                                           "\"\\ud83d\\ude00\"",
                                           "\"\\ud83d\"",
                                           "\"\\x\"",
                                           "\"\xc3\xa9\"",
                                           "\"\xc3\"",
                                           "\"\xed\xa0\x80\"",
                                           "\"\xf4\x90\x80\x80\"",
                                           "\"\n\"",
                                           "\"",
                                           "\xef\xbb\xbf",
                                           "\0"s,
                                           "//",
                                           "'a'",
                                           "NaN",
                                           "{\"a\":1}",
                                           "[[[[[[[[[1]]]]]]]]]"};
  CHECK(rc::check("token soup", [&tokens] {
    const auto picks =
        *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(tokens)).as("tokens");
    std::string text;
    for (const auto& pick : picks) text += pick;
    const auto reference = Reference::accepts(text);
    RC_ASSERT((!reference || skips(text) == *reference));
  }));
  CHECK(skips("1e501"));
}

TEST_CASE("a valid document with one byte changed gets the reference's verdict") {
  const std::string valid =
      R"({"a":{"dtype":"F32","shape":[2,3],"o":[0,24]},"b\u0041\n":[1.5e+3,-7,true,null,"é😀"]})";
  REQUIRE(skips(valid));
  CHECK(rc::check("one byte", [&valid] {
    std::string text = valid;
    const auto at = *rc::gen::inRange<size_t>(0, text.size());
    text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
    RC_ASSERT(skips(text) == Reference::accepts(text));
  }));
}

TEST_CASE("a byte means the same at every place of a string") {
  constexpr size_t kLongest = 18;  // strings are read eight bytes at a time
  for (size_t length = 1; length <= kLongest; ++length) {
    for (size_t at = 0; at < length; ++at) {
      for (char byte = 0; byte < 0x7f; ++byte) {
        std::string value(length, 'a');
        value[at] = byte;
        const std::string text = '"' + value + '"';
        const bool stands_for_itself = byte >= 0x20 && byte != '"' && byte != '\\';
        if (stands_for_itself) {
          CHECK(JsonReader(text, {}, 0).string() == value);
        } else if (byte != '\\') {
          CHECK(!skips(text));
        }
      }
    }
  }
}

TEST_CASE("escapes and surrogate pairs are decoded") {
  JsonReader in(R"("\"\\\/\b\f\n\r\tA\u0041\u00e9\u20ac\ud83d\ude00")", {}, 0);
  CHECK(in.string() == "\"\\/\b\f\n\r\tAAé€😀");
}

TEST_CASE("an integer is 64 bits and written as one") {
  const auto read = [](const std::string& text) {
    JsonReader in(text, {"f", ErrorCode::kHeaderJson}, 0);
    const i64 value = in.integer();
    in.finish();
    return value;
  };
  CHECK(read("0") == 0);
  CHECK(read(" -12 ") == -12);
  CHECK(read("9223372036854775807") == INT64_MAX);
  CHECK(read("-9223372036854775808") == INT64_MIN);
  for (const auto* text : {"9223372036854775808", "18446744073709551616", "-0", "01", "1.0", "1e0",
                           "\"1\"", "true", "null", "-", "", "1E400", "+1", "[1]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read(text), Error);
  }
}

TEST_CASE("an error has line, column, pointer and the byte offset in the file") {
  const Error error = error_of("{\n  \"a/b\": [1, \"x\"]\n}", [](JsonReader& in) {
    std::string key;
    in.begin_object();
    in.next_key(key);
    in.begin_array();
    while (in.next_element()) in.integer();
  });
  REQUIRE(error.place());
  CHECK(*error.place() == Place{"f.json", 2, 14, "/a~1b/1"});
  CHECK(note(error, "byte offset") == "23");
  CHECK(note(error, "found") == "a string");
  CHECK(note(error, "expected") == "a number");
}

TEST_CASE("a word that is none of JSON's is called so, and no value of another type") {
  for (const std::string word : {"not json", "nul", "tru", "falsity"}) {
    JsonReader in(word, {"x.json", ErrorCode::kMalformed}, kDepth);
    try {
      in.begin_object();
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.message().starts_with("expected true, false or null but found '"));
    }
  }
}

TEST_CASE("nesting beyond the limit is refused at once") {
  const std::string deep(100'000, '[');
  const Error error = error_of(deep, [](JsonReader& in) { in.skip(); });
  CHECK(note(error, "expected") == "at most 8 levels");
  CHECK(note(error, "byte offset") == "16");
}

TEST_CASE("a byte order mark is named") {
  CHECK_THROWS_WITH_AS(JsonReader("\xef\xbb\xbf{}", {}, 1),
                       "the text begins with a byte order mark", Error);
}

TEST_CASE("object reads each field once, wants the required ones and reports the others") {
  i64 a = 0;
  i64 b = 0;
  std::vector<std::string> unknown;
  const auto read = [&](JsonReader& in) {
    in.object({{"a", [&] { a = in.integer(); }}, {"b", [&] { b = in.integer(); }, false}},
              [&](const std::string& key) { unknown.push_back(key); });
    in.finish();
  };
  JsonReader in(R"({"x":[{}],"a":3,"y":null})", {}, kDepth);
  read(in);
  CHECK(a == 3);
  CHECK(b == 0);
  CHECK(unknown == std::vector<std::string>{"x", "y"});

  CHECK(error_of("{\"b\":1}", read).message() == "'a' is missing");
  CHECK(error_of(R"({"a":1,"\u0061":1})", read).message() == "a key occurs twice");
  CHECK(error_of(R"({"a":1,"x":1,"x":1})", read).message() == "a key occurs twice");
  CHECK(error_of("{\"a\":1", read).message() == "expected ',' or '}' but found the end");
  CHECK(error_of("{\"a\":1,}", read).message() == "a trailing comma: JSON allows none before '}'");
  CHECK(error_of("{\"a\":1}x", read).message() == "expected the end of the document but found 'x'");
}

TEST_CASE("a comment, a trailing comma and a missing comma are called so, at their place") {
  struct Row {
    std::string text, message;
    int line, column;
  };
  const auto rows = {
      Row{"{\"a\": 1,\n \"b\": 2,\n}", "a trailing comma: JSON allows none before '}'", 2, 8},
      Row{"[1, 2,\n]", "a trailing comma: JSON allows none before ']'", 1, 6},
      Row{"{\"a\": 1\n \"b\": 2}", "a comma is missing after this value", 1, 7},
      Row{"[{}\n {}]", "a comma is missing after this value", 1, 3},
      Row{"{ // note\n}", "a comment begins here, and JSON has no comments", 1, 3},
      Row{"[1, # note\n 2]", "a comment begins here, and JSON has no comments", 1, 5},
      Row{"[1 /* one */]", "a comment begins here, and JSON has no comments", 1, 4}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Error error = error_of(row.text, [](JsonReader& in) {
      in.skip();
      in.finish();
    });
    CHECK(error.message() == row.message);
    REQUIRE(error.place());
    CHECK(error.place()->line == row.line);
    CHECK(error.place()->column == row.column);
    CHECK(error.help_lines().size() == 1);
  }
}

TEST_CASE("Python's words for numbers are numbers where the caller takes them, and nowhere else") {
  const std::string text = R"([Infinity, -Infinity, NaN, 1, "NaN"])";
  JsonReader in(text, {"f.json", ErrorCode::kHeaderJson}, kDepth, JsonNumbers::kPython);
  in.begin_array();
  std::vector<double> numbers;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(in.next_element());
    CHECK(in.kind() == JsonKind::kNumber);
    CHECK(in.next_is_word());
    CHECK_FALSE(in.next_is_integer());
    numbers.push_back(in.number());
  }
  CHECK(numbers[0] > 1e308);
  CHECK(numbers[1] < -1e308);
  CHECK(numbers[2] != numbers[2]);
  REQUIRE(in.next_element());
  CHECK_FALSE(in.next_is_word());
  CHECK(in.integer() == 1);
  REQUIRE(in.next_element());
  CHECK(in.string() == "NaN");
  CHECK_FALSE(in.next_element());
  in.finish();
  for (const std::string word : {"Infinity", "-Infinity", "NaN", "[-Infinity]"}) {
    CAPTURE(word);
    CHECK_FALSE(skips(word));
  }
}

TEST_CASE("such a word is no integer, and nothing stands right behind it") {
  const auto is_taken = [](const std::string& text, bool as_integer) {
    try {
      JsonReader in(text, {"f.json", ErrorCode::kHeaderJson}, kDepth, JsonNumbers::kPython);
      as_integer ? static_cast<void>(in.integer()) : in.skip();
      in.finish();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  CHECK(is_taken("Infinity", false));
  CHECK_FALSE(is_taken("Infinity", true));
  for (const std::string text : {"Infinity1", "NaNs", "-NaN", "+Infinity", "infinity", "Infinit"}) {
    CAPTURE(text);
    CHECK_FALSE(is_taken(text, false));
  }
}

TEST_CASE("many unknown fields are skipped in time, and one that comes twice is still found") {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key " + std::to_string(i) + "\": 0, ";
  const auto read = [](const std::string& document) {
    JsonReader in(document, {"f.json", ErrorCode::kMalformed}, kDepth);
    in.object({{"a", [&] { in.skip(); }}});
  };
  const std::clock_t begin = std::clock();
  read(text + "\"a\": 1}");
  CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);
  CHECK_THROWS_WITH_AS(read(text + "\"key 99999\": 0, \"a\": 1}"), "a key occurs twice", Error);
}

TEST_CASE("places of many problems are found in time, in any order") {
  constexpr int kLines = 200'000;
  std::string text = "[0";
  for (int i = 1; i < kLines; ++i) text += ",\n " + std::to_string(i);
  text += "]";
  JsonReader in(text, {"f.json", ErrorCode::kMalformed}, kDepth);
  const std::clock_t begin = std::clock();
  in.begin_array();
  for (int i = 0; in.next_element(); ++i) {
    REQUIRE(in.integer() == i);
    const Place place = in.place_at(in.last_offset());
    REQUIRE(place.line == i + 1);
    REQUIRE(place.column == 2);
  }
  CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);
  for (const size_t offset : {text.size(), text.size() + 9, size_t{0}, text.find('7'), size_t{2}}) {
    const auto breaks =
        std::count(text.begin(),
                   text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size())), '\n');
    CHECK(in.place_at(offset).line == breaks + 1);
  }
}

}  // namespace shardtool
