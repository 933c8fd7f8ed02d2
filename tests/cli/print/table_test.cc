#include "cli/print/table.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/cli/print/printed.h"

namespace shardtool::cli {
namespace {

/// Parses RFC 4180.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back({""});
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST_CASE("CSV gives every cell back, whatever separators it holds") {
  CHECK(rc::check("round trip", [] {
    const auto cell =
        rc::gen::container<std::string>(rc::gen::element(',', '"', '\n', '\t', 'a', ' '));
    const auto rows = *rc::gen::container<std::vector<std::vector<std::string>>>(
        rc::gen::container<std::vector<std::string>>(3, cell));
    const Table table{{{"a"}, {"b"}, {"c"}}, rows};
    auto expected = rows;
    expected.insert(expected.begin(), {"a", "b", "c"});
    RC_ASSERT(read_csv(printed(table, TableFormat::kCsv)) == expected);
  }));
}

TEST_CASE("TSV has one line per row and one tab between cells, whatever they hold") {
  const Table table{{{"a"}, {"b"}}, {{"x\ty\n\\", "z"}}};
  CHECK(printed(table, TableFormat::kTsv) == "a\tb\nx\\ty\\n\\\\\tz\n");
}

TEST_CASE("text columns align, numbers to the right, without trailing blanks") {
  const Table table{{{"name"}, {"bytes", true}, {"note"}},
                    {{"w\xc3\xb6rd", "7", ""}, {"x", "1234567", "y"}}};
  CHECK(printed(table, TableFormat::kText) ==
        "  name    bytes  note\n"
        "  w\xc3\xb6rd        7\n"
        "  x     1234567  y\n");
}

TEST_CASE("control characters in cells are escaped on a terminal") {
  const Table table{{{"name"}}, {{"a\x1b[31mb"}}};
  CHECK(printed(table, TableFormat::kText) == "  name\n  a\\x1b[31mb\n");
}

TEST_CASE("Markdown is a pipe table") {
  const Table table{{{"a"}, {"b", true}}, {{"x|y", "1"}}};
  CHECK(printed(table, TableFormat::kMarkdown) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n");
}

}  // namespace
}  // namespace shardtool::cli
