#pragma once

#include <string>
#include <vector>

#include "cli/print/output.h"

namespace shardtool::cli {

enum class TableFormat { kText, kCsv, kTsv, kMarkdown };

struct Column {
  std::string title;
  bool right = false;  ///< right-aligned, for numbers
};

/// Rows of cells with column titles. Every row has one cell per column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// kText: aligned, indented by two, no trailing blanks, control characters escaped. kCsv: RFC 4180
/// with LF. kTsv: tab, newline and backslash escaped with a backslash. kMarkdown: a pipe table.
void print_table(Output& output, const Table& table, TableFormat format);

}  // namespace shardtool::cli
