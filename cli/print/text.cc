#include "cli/print/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "cli/print/table.h"
#include "lib/api/catalogue/layouts.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/diff.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/model/graph/graph_head.h"

namespace shardtool::cli {
namespace {

/// The exit status of an error; of an interruption that of each signal.
std::string exit_text(const ErrorInfo& info) {
  return info.code == ErrorCode::kInterrupted ? "130, 143 or 129"
                                              : std::to_string(info.exit_status);
}

void print_names(Session& session, std::string_view label, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    session.out().write(fmt::format("  only in {}: {}\n", label, quote_for_message(name)));
  }
}

Table changes_table(const std::vector<api::DiffChange>& changes) {
  Table table{{{"name"}, {"change"}, {"bytes differing", true}, {"first at byte", true}}, {}};
  for (const auto& change : changes) {
    const bool data = change.first_difference >= 0;
    table.rows.push_back({change.name, change.what,
                          data ? format_count(change.bytes_differing) : "",
                          data ? format_count(change.first_difference) : ""});
  }
  return table;
}

}  // namespace

std::string labelled(const Style& style, std::string_view label, std::string_view text) {
  constexpr size_t kWidth = 9;
  const std::string fill(label.size() < kWidth ? kWidth - label.size() : 1, ' ');
  return style.bold(label) + fill + std::string(text) + "\n";
}

std::string command_text(const std::vector<std::string>& words) {
  std::string command = "shardtool";
  for (const std::string& word : words) command += " " + shell_quoted(word);
  return command;
}

void print_text(Session& session, const api::DiffReport& report) {
  for (const auto& warning : report.warnings) session.warn(warning);
  if (session.quiet()) return;
  session.out().write(labelled(
      session.out_style(), "tensors",
      fmt::format("{} common, {} only in A, {} only in B; {} changed, {} identical",
                  format_count(report.common), format_count(std::ssize(report.only_a)),
                  format_count(std::ssize(report.only_b)), format_count(std::ssize(report.changed)),
                  format_count(report.identical))));
  print_names(session, "A", report.only_a);
  print_names(session, "B", report.only_b);
  if (!report.changed.empty()) {
    print_table(session.out(), changes_table(report.changed), TableFormat::kText);
  }
  if (report.cast > 0) {
    session.out().write(
        labelled(session.out_style(), "cast",
                 fmt::format("{} of the identical ones after the cast that B's manifest records",
                             format_count(report.cast))));
  }
  if (report.dequantized > 0) {
    session.out().write(labelled(
        session.out_style(), "unpacked",
        fmt::format("{} of the identical ones after the unpacking that B's manifest records",
                    format_count(report.dequantized))));
  }
  if (report.not_compared > 0) {
    session.out().write(labelled(
        session.out_style(), "values",
        fmt::format("B's manifest records a change of {}: --values repeats it and compares",
                    plural(report.not_compared, "tensor"))));
  }
  session.out().write(report.equal ? "same\n" : "differs\n");
}
void print_text(Session& session, const ErrorInfo& info) {
  session.out().write(fmt::format("{}  {}  (exit {})\n{}\n", session.out_style().bold(info.id),
                                  info.title, exit_text(info), info.explanation));
}

void print_text(Session& session, std::span<const ErrorInfo> errors) {
  Table table{{{"error"}, {"exit"}, {"title"}}, {}};
  for (const ErrorInfo& info : errors)
    table.rows.push_back({std::string(info.id), exit_text(info), std::string(info.title)});
  print_table(session.out(), table, TableFormat::kText);
  session.out().write("\n`shardtool check --rules` lists the rules of check.\n");
}

void print_text(Session& session, const api::PresetList& list) {
  Table presets{{{"preset"}, {"for"}}, {}};
  for (const auto& preset : list.presets) presets.rows.push_back({preset.name, preset.description});
  print_table(session.out(), presets, TableFormat::kText);
  Table families{{{"family"}, {"for quantised tensors, beside any preset"}}, {}};
  for (const auto& family : list.families)
    families.rows.push_back({family.name, family.description});
  session.out().write("\n");
  print_table(session.out(), families, TableFormat::kText);
}

void print_text(Session& session, const std::vector<model::GraphHead>& graphs) {
  Table table{{{"graph"}, {"of"}}, {}};
  for (const auto& graph : graphs) table.rows.push_back({graph.name, graph.description});
  print_table(session.out(), table, TableFormat::kText);
}

void print_text(Session& session, const std::vector<api::LayoutInfo>& layouts) {
  for (const auto& layout : layouts) {
    session.out().write(fmt::format("{}  {}\n", layout.label, layout.description));
    Table table{{{"models"}, {"loaded by the engine"}}, {}};
    for (const auto& models : layout.models) {
      table.rows.push_back({fmt::format("{}", fmt::join(models.model_types, ", ")), models.proof});
    }
    print_table(session.out(), table, TableFormat::kText);
    for (const std::string& reason : layout.experimental) {
      session.out().write(fmt::format("  experimental  {}\n", reason));
    }
    for (const std::string& reason : layout.refused) {
      session.out().write(fmt::format("  refused  {}\n", reason));
    }
  }
}

std::string unended_text(const std::vector<int>& missing, int shares) {
  constexpr size_t kNamed = 16;
  const size_t named = std::min(missing.size(), kNamed);
  const auto end = missing.begin() + static_cast<std::ptrdiff_t>(named);
  return fmt::format("{} of {} shares have not ended: {}{}", missing.size(), shares,
                     fmt::join(missing.begin(), end, ", "), named < missing.size() ? ", ..." : "");
}

}  // namespace shardtool::cli
