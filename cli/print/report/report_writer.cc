#include "cli/print/report/report_writer.h"

#include "cli/print/text.h"

namespace shardtool::cli {

void TextReport::fact(std::string_view label, std::string_view text) {
  output_.write(labelled(style_, label, text));
}

void TextReport::title(std::string_view text) {
  output_.write(style_.bold(text) + "\n");
}

void TextReport::table(const Table& table) {
  print_table(output_, table, TableFormat::kText);
}

}  // namespace shardtool::cli
