#pragma once

#include <string>
#include <string_view>

#include "cli/print/report/report_writer.h"

namespace shardtool::cli {

/// Escapes a text so that GitHub and GitLab show it as it is: no markup, no HTML, no mention.
std::string markdown_text(std::string_view text);

/// A pipe table, with at most `most_rows` rows.
std::string markdown_table(const Table& table, size_t most_rows);

/// Writes Markdown for a comment of a pull request, which may have 65,536 characters. Tables end
/// after 32 rows, and the report before that limit; both say so.
class MarkdownReport final : public ReportWriter {
 public:
  explicit MarkdownReport(std::string_view heading);

  void fact(std::string_view label, std::string_view text) override;
  void title(std::string_view text) override;
  void table(const Table& table) override;

  std::string take();

 private:
  /// Appends a block that stands alone, or continues a list; drops what the limit has no room for.
  void append(std::string block, bool is_item);

  std::string text_;
  std::string title_;  ///< waits for its table
  bool in_list_ = false;
  size_t left_out_ = 0;  ///< parts that the limit dropped
};

}  // namespace shardtool::cli
