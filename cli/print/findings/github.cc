#include <fmt/format.h>

#include <array>

#include "cli/print/findings/findings.h"

namespace shardtool::cli {
namespace {

using check::Finding;
using check::Severity;

/// Annotations per severity that GitHub shows for a step.
constexpr int kShownPerSeverity = 10;
constexpr size_t kAnnotationsPerRule = 3;

std::string_view command_of(Severity severity) {
  if (severity == Severity::kError) return "error";
  return severity == Severity::kWarning ? "warning" : "notice";
}

std::string escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (is_property && c == ':') {
      out += "%3A";
    } else if (is_property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

std::string annotation(const Finding& finding, i64 more) {
  const check::RuleInfo& info = check::rule_info(finding.rule);
  std::string properties;
  if (!finding.file.empty()) properties += "file=" + workflow_property(finding.file) + ",";
  if (finding.line > 0) properties += fmt::format("line={},", finding.line);
  if (finding.line > 0 && finding.column > 0) properties += fmt::format("col={},", finding.column);
  properties += "title=" + workflow_property(fmt::format("{} {}", info.id, info.title));
  std::string message = finding_line(finding);
  if (more > 0) message += fmt::format(" (and {} more)", more);
  return fmt::format("::{} {}::{}\n", command_of(finding.severity), properties,
                     workflow_data(message));
}

}  // namespace

std::string workflow_data(std::string_view text) {
  return escaped(text, false);
}

std::string workflow_property(std::string_view text) {
  return escaped(text, true);
}

void print_findings_github(Output& out, const api::CheckReport& report) {
  std::array<int, 4> shown{};
  for (const RuleFindings& rule : by_rule(report, kAnnotationsPerRule)) {
    const i64 more = rule.rule.count - std::ssize(rule.listed);
    for (const Finding* finding : rule.listed) {
      if (++shown[static_cast<size_t>(finding->severity)] > kShownPerSeverity) continue;
      out.write(annotation(*finding, finding == rule.listed.back() ? more : 0));
    }
  }
  out.write(findings_summary(report) + "\n");
}

}  // namespace shardtool::cli
