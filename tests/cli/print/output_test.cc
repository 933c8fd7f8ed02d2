#include "cli/print/output.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/print/color.h"
#include "cli/print/error.h"
#include "cli/print/progress.h"
#include "cli/print/table.h"
#include "lib/base/json_writer.h"
#include "tests/cli/print/printed.h"

namespace shardtool::cli {
namespace {

/// Random bytes with a raised share of terminal control sequences.
std::string hostile_text() {
  constexpr auto kPieces = std::to_array<std::string_view>({"\x1b[31m",
                                                            "\x1b]0;title\x07",
                                                            "\r",
                                                            "\x7f",
                                                            "\xc2\x9b"
                                                            "2J",
                                                            "\xd8\x9c",
                                                            "\xe2\x80\x8f",
                                                            "\xe2\x80\xa8",
                                                            "\xe2\x80\xae",
                                                            "\xe2\x81\xa6",
                                                            "\xe2\x80",
                                                            "\xff",
                                                            "\xed\xa0\x80",
                                                            "\xc0\x80",
                                                            "model.layers.0",
                                                            "gr\xc3\xbc\xc3\x9f",
                                                            "\xf0\x9f\x98\x80",
                                                            "\"",
                                                            "\\",
                                                            "{",
                                                            "</a>",
                                                            "%0A"});
  std::string text;
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
    text += *rc::gen::arbitrary<bool>() ? std::string(*rc::gen::elementOf(kPieces))
                                        : *rc::gen::string<std::string>();
  }
  return text;
}

/// Unicode code points of a text, decoded by another library; -1 for invalid UTF-8.
std::vector<long> code_points(const std::string& text) {
  std::vector<long> points;
  const std::string escaped = nlohmann::json(text).dump(-1, ' ', true);  // throws for invalid UTF-8
  for (size_t at = 1; at + 1 < escaped.size();) {
    if (escaped[at] != '\\') {
      points.push_back(static_cast<unsigned char>(escaped[at++]));
    } else if (escaped[at + 1] == 'u') {
      points.push_back(std::stol(escaped.substr(at + 2, 4), nullptr, 16));
      at += 6;
    } else {
      const char letter = escaped[at + 1];
      points.push_back(letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == 'r' ? '\r' : ' ');
      at += 2;
    }
  }
  return points;
}

/// True if a terminal shows the text unchanged.
bool is_harmless(const std::string& text) {
  const auto points = code_points(text);
  return std::none_of(points.begin(), points.end(), [](long p) {
    return (p < 0x20 && p != '\n' && p != '\t') || (p >= 0x7f && p < 0xa0) || p == 0x61c ||
           p == 0x200e || p == 0x200f || (p >= 0x2028 && p <= 0x202e) ||
           (p >= 0x2066 && p <= 0x2069);
  });
}

std::string without_colours(std::string text) {
  for (const std::string_view sequence : Style::kSequences) {
    for (size_t at = text.find(sequence); at != text.npos; at = text.find(sequence, at))
      text.erase(at, sequence.size());
  }
  return text;
}

TEST_CASE("no bytes leave for a terminal that it would act on") {
  CHECK(rc::check("any text", [] {
    const std::string text = hostile_text();
    const std::string plain = terminal_text(text, false);
    RC_ASSERT(is_harmless(plain));
    RC_ASSERT(terminal_text(plain, false) == plain);
    RC_ASSERT(is_harmless(without_colours(terminal_text(text, true))));
  }));
  CHECK(terminal_text("a\x1b[1mb\x1b[0m\x1b[8m", true) == "a\x1b[1mb\x1b[0m\\x1b[8m");
  CHECK(terminal_text("a\x1b[1mb", false) == "a\\x1b[1mb");
}

TEST_CASE("a document keeps its meaning on the way to a terminal") {
  CHECK(rc::check("any names", [] {
    std::string text;
    JsonWriter writer([&text](std::string_view piece) { text += piece; });
    const std::string name = hostile_text();
    writer.begin_object().field("name", name).key(name).value(name).end_object();
    const std::string shown = terminal_text(text, false);
    RC_ASSERT(is_harmless(shown));
    RC_ASSERT(nlohmann::json::parse(shown) == nlohmann::json::parse(text));
  }));
}

TEST_CASE("names, paths and excerpts are harmless in errors, tables and lines of progress") {
  CHECK(rc::check("any names", [] {
    const std::string name = hostile_text();
    const TextFile file("\n" + name + "\n");
    const auto error = Error(ErrorCode::kMalformed, name)
                           .at({file.path(), 2, 1 + static_cast<int>(name.size() / 2), name})
                           .tensor(name)
                           .note(name, name)
                           .help(name);
    RC_ASSERT(is_harmless(error_text(error, Style(false), true)));
    RC_ASSERT(is_harmless(without_colours(error_text(error, Style(true), true))));
    for (const auto format :
         {TableFormat::kText, TableFormat::kCsv, TableFormat::kTsv, TableFormat::kMarkdown}) {
      RC_ASSERT(is_harmless(printed({{{name}, {"b"}}, {{"x", name}}}, format)));
    }
    const ProgressState state{{1, 2, name}};
    RC_ASSERT(is_harmless(progress_line(state)));
    RC_ASSERT(is_harmless(progress_bar(state, 100)));
    RC_ASSERT(is_harmless(terminal_text(progress_json(state, "status"), false)));
  }));
}

}  // namespace
}  // namespace shardtool::cli
