#include "cli/print/report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostTableRows = 32;
constexpr size_t kMostOfComment = 65'536;  ///< characters that GitHub takes
constexpr size_t kRoomForEnd = 200;        ///< for the sentence about what is left out
constexpr size_t kMostOfText = 2'000;      ///< characters of one fact or cell

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + markdown_text(cell) + " |";
  return line + "\n";
}

std::vector<std::string> titles_of(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*[|~<>&$";
  const std::string shown = quote_for_message(text, kMostOfText);
  std::string escaped;
  for (size_t at = 0; at < shown.size(); ++at) {
    const char c = shown[at];
    // Inside a word, as in all_reduce, it is no markup.
    const bool is_inside =
        at > 0 && at + 1 < shown.size() && is_word(shown[at - 1]) && is_word(shown[at + 1]);
    if (kMarkup.find(c) != kMarkup.npos || (c == '_' && !is_inside)) escaped += '\\';
    escaped += c;
    if (c == '@') escaped += "&#8203;";  // a zero-width space: nobody is notified
  }
  return escaped;
}

std::string markdown_table(const Table& table, size_t most_rows) {
  std::string text = line_of(titles_of(table)) + "|";
  for (const Column& column : table.columns) text += column.right ? " ---: |" : " --- |";
  text += "\n";
  for (size_t r = 0; r < std::min(most_rows, table.rows.size()); ++r)
    text += line_of(table.rows[r]);
  return text;
}

MarkdownReport::MarkdownReport(std::string_view heading) {
  append("### " + markdown_text(heading) + "\n", false);
}

void MarkdownReport::append(std::string block, bool is_item) {
  if (text_.size() + block.size() + kRoomForEnd > kMostOfComment || left_out_ > 0) {
    ++left_out_;
    return;
  }
  if (!text_.empty() && !(is_item && in_list_)) text_ += "\n";
  text_ += block;
  in_list_ = is_item;
}

void MarkdownReport::fact(std::string_view label, std::string_view text) {
  append(label.empty() ? fmt::format("  - {}\n", markdown_text(text))
                       : fmt::format("- **{}**: {}\n", markdown_text(label), markdown_text(text)),
         true);
}

void MarkdownReport::title(std::string_view text) {
  title_ = "**" + markdown_text(text) + "**\n\n";
}

void MarkdownReport::table(const Table& table) {
  std::string block = std::exchange(title_, "") + markdown_table(table, kMostTableRows);
  if (table.rows.size() > kMostTableRows)
    block +=
        fmt::format("\n{} are left out; `--json` has them.\n",
                    plural(static_cast<i64>(table.rows.size() - kMostTableRows), "further row"));
  append(std::move(block), false);
}

std::string MarkdownReport::take() {
  if (left_out_ > 0)
    text_ +=
        fmt::format("\n{} left out, since a comment has at most {} characters; `--json` has all.\n",
                    left_out_ == 1 ? "One part is" : fmt::format("{} parts are", left_out_),
                    format_count(kMostOfComment));
  return std::move(text_);
}

}  // namespace shardtool::cli
