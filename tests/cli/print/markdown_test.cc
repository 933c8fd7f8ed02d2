#include "cli/print/report/markdown.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/text.h"
#include "tests/cli/print/printed.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view kInvisible = "&#8203;";

/// The characters that Markdown shows for a text: escapes are taken away. Fails for markup.
std::string shown(const std::string& markdown) {
  std::string text;
  for (size_t at = 0; at < markdown.size(); ++at) {
    if (markdown.substr(at).starts_with(kInvisible)) {
      at += kInvisible.size() - 1;
      continue;
    }
    const bool is_escape = markdown[at] == '\\';
    if (is_escape) ++at;
    const bool is_markup = std::string_view("`*[|~<&$").find(markdown[at]) != std::string::npos;
    RC_ASSERT((is_escape || !is_markup));
    text += markdown.at(at);
  }
  return text;
}

/// Cells of a line of a table: pipes without an escape divide them.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  bool is_escaped = false;
  for (const char c : line) {
    if (c == '|' && !is_escaped) {
      cells.emplace_back();
    } else if (!cells.empty()) {
      cells.back() += c;
    }
    is_escaped = c == '\\' && !is_escaped;
  }
  cells.pop_back();  // after the last pipe
  return cells;
}

rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(rc::gen::element('a', '_', '*', '|', '`', '[', '<', '\\',
                                                          '@', '\n', '&', '~', '$', '.', ' '));
}

TEST_CASE("Markdown shows every text as it is") {
  CHECK(rc::check("escapes", [] {
    const std::string text = *any_text();
    RC_ASSERT(shown(markdown_text(text)) == quote_for_message(text, text.size() * 6 + 1));
  }));
  CHECK(markdown_text("all_reduce of _x_") == "all_reduce of \\_x\\_");
  CHECK(markdown_text("@team") == "@&#8203;team");
}

TEST_CASE("a row of a Markdown table has one cell per column, whatever stands in it") {
  CHECK(rc::check("cells", [] {
    const auto rows = *rc::gen::container<std::vector<std::vector<std::string>>>(
        rc::gen::container<std::vector<std::string>>(3, any_text()));
    const Table table{{{"a"}, {"b", true}, {"c"}}, rows};
    const auto lines = lines_of(markdown_table(table, rows.size()));
    RC_ASSERT(lines.size() == rows.size() + 2);
    for (const std::string& line : lines) RC_ASSERT(cells_of(line).size() == 3);
  }));
}

TEST_CASE("a comment says how many rows it leaves out") {
  Table table{{{"row"}}, {}};
  for (int row = 0; row < 40; ++row) table.rows.push_back({fmt::format("row {}", row)});
  MarkdownReport report("rows");
  report.table(table);
  const std::string text = report.take();
  CHECK(text.find("row 31") != text.npos);
  CHECK(text.find("row 32") == text.npos);
  CHECK(text.find("8 further rows are left out") != text.npos);
}

TEST_CASE("a comment is not longer than GitHub takes, and says what it leaves out") {
  CHECK(rc::check("length", [] {
    const auto lengths =
        *rc::gen::container<std::vector<size_t>>(60, rc::gen::inRange<size_t>(0, 3000));
    MarkdownReport report("long");
    for (const size_t length : lengths) report.fact("fact", std::string(length, '*'));
    const std::string text = report.take();
    const auto facts = static_cast<size_t>(
        std::ranges::count_if(lines_of(text), [](const auto& l) { return l.starts_with("- "); }));
    RC_ASSERT(text.size() <= 65'536u);
    RC_ASSERT((facts < lengths.size()) == (text.find("left out") != text.npos));
  }));
}

TEST_CASE("facts are items of one list, and tables stand apart") {
  MarkdownReport report("plan of 'a|b'");
  report.fact("fits", "1 GiB of 2 GiB");
  report.fact("", "tp=2 would fit, too");
  report.title("what if");
  report.table({{{"layout"}}, {{"tp=2"}}});
  report.fact("cache", "1 KiB");
  CHECK(report.take() ==
        "### plan of 'a\\|b'\n\n- **fits**: 1 GiB of 2 GiB\n  - tp=2 would fit, too\n\n"
        "**what if**\n\n| layout |\n| --- |\n| tp=2 |\n\n- **cache**: 1 KiB\n");
}

}  // namespace
}  // namespace shardtool::cli
