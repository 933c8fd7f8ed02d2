#include "cli/print/table.h"

#include <algorithm>

#include "cli/print/report/markdown.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMaxCell = 512;

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool hit = text.substr(at, from.size()) == from;
    out += hit ? to : text.substr(at, 1);
    at += hit ? from.size() : 1;
  }
  return out;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return '"' + replaced(text, "\"", "\"\"") + '"';
}

std::string tsv_cell(std::string_view text) {
  return replaced(replaced(replaced(text, "\\", "\\\\"), "\t", "\\t"), "\n", "\\n");
}

template <class Cell>
std::string joined(const std::vector<std::string>& cells, std::string_view separator, Cell cell) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += separator;
    line += cell(cells[i]);
  }
  return line;
}

std::vector<std::string> titles(const Table& table) {
  std::vector<std::string> cells;
  for (const auto& column : table.columns) cells.push_back(column.title);
  return cells;
}

void print_separated(Output& output, const Table& table, std::string_view separator,
                     std::string (*cell)(std::string_view)) {
  output.write(joined(titles(table), separator, cell) + "\n");
  for (const auto& row : table.rows) output.write(joined(row, separator, cell) + "\n");
}

std::string aligned_line(const Table& table, const std::vector<std::string>& cells,
                         const std::vector<size_t>& widths) {
  std::string line = "  ";
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string fill(widths[i] - display_width(cells[i]), ' ');
    line += (i > 0 ? "  " : "") + (table.columns[i].right ? fill + cells[i] : cells[i] + fill);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

void print_text(Output& output, const Table& table) {
  std::vector<std::vector<std::string>> lines{titles(table)};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<size_t> widths(table.columns.size());
  for (auto& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) {
      cells[i] = quote_for_message(cells[i], kMaxCell);
      widths[i] = std::max(widths[i], display_width(cells[i]));
    }
  }
  for (const auto& cells : lines) output.write(aligned_line(table, cells, widths));
}

}  // namespace

void print_table(Output& output, const Table& table, TableFormat format) {
  switch (format) {
    case TableFormat::kText:
      return print_text(output, table);
    case TableFormat::kCsv:
      return print_separated(output, table, ",", csv_cell);
    case TableFormat::kTsv:
      return print_separated(output, table, "\t", tsv_cell);
    case TableFormat::kMarkdown:
      return output.write(markdown_table(table, table.rows.size()));
  }
}

}  // namespace shardtool::cli
