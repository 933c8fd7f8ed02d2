#include <fmt/format.h>

#include <algorithm>

#include "cli/print/findings/findings.h"
#include "kernels/xxh3/xxh3.h"

namespace shardtool::cli {
namespace {

using check::Finding;
using check::Severity;

constexpr size_t kListedInGitlab = 100;

std::string_view severity_of(Severity severity) {
  if (severity == Severity::kError) return "critical";
  return severity == Severity::kWarning ? "minor" : "info";
}

/// Stable identifier: equal for the same finding of two runs, distinct within one run.
std::string fingerprint(const Finding& finding, size_t number) {
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}", check::rule_info(finding.rule).id,
                                       finding.file, finding.tensor, finding.rank, number);
  return kernels::xxh3_hex(std::as_bytes(std::span(text)));
}

}  // namespace

void print_findings_gitlab(Output& out, const api::CheckReport& report) {
  JsonWriter json([&out](std::string_view text) { out.write(text); });
  json.begin_array();
  for (const RuleFindings& rule : by_rule(report, kListedInGitlab)) {
    const i64 more = rule.rule.count - std::ssize(rule.listed);
    for (size_t i = 0; i < rule.listed.size(); ++i) {
      const Finding& finding = *rule.listed[i];
      std::string description = finding_line(finding);
      if (more > 0 && i + 1 == rule.listed.size()) {
        description += fmt::format(" (and {} more)", more);
      }
      json.begin_object().field("description", description);
      json.field("check_name", check::rule_info(finding.rule).id);
      json.field("fingerprint", fingerprint(finding, i));
      json.field("severity", severity_of(finding.severity));
      json.key("location").begin_object().field("path", finding.file);
      json.key("lines").begin_object().field("begin", std::max(finding.line, 1));
      json.end_object().end_object().end_object();
    }
  }
  json.end_array();
}

}  // namespace shardtool::cli
