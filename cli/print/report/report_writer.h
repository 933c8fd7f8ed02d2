#pragma once

#include <string_view>

#include "cli/print/color.h"
#include "cli/print/output.h"
#include "cli/print/table.h"

namespace shardtool::cli {

/// Receives a report for people, part by part: one function per report serves all its renderings.
class ReportWriter {
 public:
  virtual ~ReportWriter() = default;
  /// Writes a fact with its label; an empty label continues the one before.
  virtual void fact(std::string_view label, std::string_view text) = 0;
  /// Writes the title of the table that follows.
  virtual void title(std::string_view text) = 0;
  virtual void table(const Table& table) = 0;
};

/// Writes for a terminal.
class TextReport final : public ReportWriter {
 public:
  TextReport(Output& output, const Style& style) : output_(output), style_(style) {}

  void fact(std::string_view label, std::string_view text) override;
  void title(std::string_view text) override;
  void table(const Table& table) override;

 private:
  Output& output_;
  const Style& style_;
};

}  // namespace shardtool::cli
