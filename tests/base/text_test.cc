#include "lib/base/text.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <limits>

using namespace shardtool;

TEST_CASE("a number in hex has sixteen digits, behind what is there") {
  std::string text = "x";
  append_hex(text, 0xfedcba9876543210);
  append_hex(text, 0x0a);
  CHECK(text == "xfedcba9876543210000000000000000a");
}

TEST_CASE("bytes print with IEC units, whole when exact, else with two decimals") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(17) == "17 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1 KiB");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(520 * 1024) == "520 KiB");
  CHECK(format_bytes(16060522496) == "14.96 GiB");
  CHECK(format_bytes(1024 * 1024 - 1) == "1.00 MiB");
  CHECK(format_bytes(std::numeric_limits<i64>::max()) == "8192 PiB");
}

TEST_CASE("counts are grouped by thousands") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(8030261248) == "8,030,261,248");
  CHECK(format_count(-1234) == "-1,234");
  CHECK(format_count(-123) == "-123");
}

TEST_CASE("text for a message has no control characters") {
  CHECK(quote_for_message("model.layers.0") == "model.layers.0");
  CHECK(quote_for_message("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\u007f");
  CHECK(quote_for_message("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
  CHECK(quote_for_message("a\xc2\x9b[31m") == "a\\u009b[31m");             // C1: CSI
  CHECK(quote_for_message("a\xe2\x80\xaetxt") == "a\\u202etxt");           // right to left
  CHECK(quote_for_message("\xe2\x81\xa6x\xd8\x9c") == "\\u2066x\\u061c");  // isolate, mark
  CHECK(quote_for_message("\x0e\x84z") == "\\x0e\\x84z");                  // invalid UTF-8
  CHECK(quote_for_message("\xf7\xbf\xc3") == "\\xf7\\xbf\\xc3");
  CHECK(quote_for_message("\xe2\x80\xa8\xe2\x80\xa9") == "\\u2028\\u2029");  // ends of lines
  CHECK(quote_for_message("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
}

TEST_CASE("joined again, the parts of a text are the text, and none has the separator") {
  for (const std::string_view separator : {",", " + "}) {
    CHECK(rc::check("split_at", [separator] {
      const auto text =
          *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a,+ "))).as("text");
      const auto parts = split_at(text, separator);
      RC_ASSERT(fmt::format("{}", fmt::join(parts, separator)) == text);
      for (const std::string_view part : parts) RC_ASSERT(part.find(separator) == part.npos);
    }));
  }
  CHECK(split_at("", ",") == std::vector<std::string_view>{""});
  CHECK(split_at(",a,", ",") == std::vector<std::string_view>{"", "a", ""});
}

TEST_CASE("a count has its noun in the right number") {
  CHECK(plural(1, "tensor") == "1 tensor");
  CHECK(plural(0, "tensor") == "0 tensors");
  CHECK(plural(1200, "file") == "1,200 files");
}

TEST_CASE("long text is cut between characters") {
  CHECK(quote_for_message("abcdef", 6) == "abcdef");
  CHECK(quote_for_message("abcdefg", 6) == "abcdef...");
  CHECK(quote_for_message("abcde\xc3\xbc", 6) == "abcde...");
  CHECK(quote_for_message("abcd\xf0\x9f\x98\x80"
                          "e",
                          6) == "abcd...");
  CHECK(quote_for_message("a\x01\x01\x01", 6) == "a\\x01...");
}

TEST_CASE("near misses are the nearest candidates first, at most three") {
  const std::vector<std::string> names{"model", "modes", "mode", "data", "mdoel", "replica"};
  CHECK(near_misses("modle", names) == std::vector<std::string>{"mode", "model", "mdoel"});
  CHECK(near_misses("model", {"model"}) == std::vector<std::string>{"model"});
  CHECK(near_misses("xyz", names).empty());
  CHECK(near_misses("tp", {"dp", "ep", "pp", "tp2"}) == std::vector<std::string>{"dp", "ep", "pp"});
}

TEST_CASE("a candidate that shares nothing with a short word is no near miss") {
  CHECK(near_misses("a", {"b"}).empty());
  CHECK(near_misses("ab", {"cd"}).empty());
  CHECK(near_misses("", {"a"}).empty());
}

TEST_CASE("a transposition counts once") {
  CHECK(near_misses("lyaers", {"layers"}) == std::vector<std::string>{"layers"});
  CHECK(near_misses("abcd", {"badc"}) == std::vector<std::string>{"badc"});
}

TEST_CASE("the suggestion reads as a question") {
  CHECK(did_you_mean("modle", {"model"}) == "did you mean 'model'?");
  CHECK(did_you_mean("tp", {"dp", "ep", "pp"}) == "did you mean 'dp', 'ep' or 'pp'?");
  CHECK(did_you_mean("tp", {"heads"}).empty());
}

TEST_CASE("bytes become two digits each, and code points UTF-8") {
  CHECK(to_hex(std::string_view("\x00\x7f\xff", 3)) == "007fff");
  std::string text;
  for (const char32_t point : {U'a', U'\u00e9', U'\u20ac', U'\U0001f600'}) append_utf8(text, point);
  CHECK(text == "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}
