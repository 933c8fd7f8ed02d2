#include "lib/base/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/findings/findings.h"
#include "cli/print/report/markdown.h"

namespace shardtool::cli {
namespace {

using check::Finding;
using check::Severity;

constexpr size_t kShownPerRule = 3;
constexpr size_t kLongestLine = 1000;

std::string colored(const Style& style, Severity severity, std::string_view text) {
  if (severity == Severity::kError) return style.red(text);
  return severity == Severity::kWarning ? style.yellow(text) : style.cyan(text);
}

std::string place_of(const Finding& finding) {
  std::string text = quote_for_message(finding.file, kLongestLine);
  if (finding.line > 0) text += fmt::format(":{}", finding.line);
  if (finding.line > 0 && finding.column > 0) text += fmt::format(":{}", finding.column);
  return text;
}

std::string note_line(const Style& style, std::string_view label, std::string_view text) {
  if (text.empty()) return "";
  return fmt::format("   {} {}: {}\n", style.blue("="), label,
                     quote_for_message(text, kLongestLine));
}

void print_finding(Output& out, const Style& style, const Finding& finding) {
  const check::RuleInfo& info = check::rule_info(finding.rule);
  const std::string head = fmt::format("{}[{}]", to_string(finding.severity), info.id);
  out.write(fmt::format("{}: {}\n", colored(style, finding.severity, head),
                        style.bold(quote_for_message(finding.message, kLongestLine))));
  if (!finding.file.empty()) {
    out.write(fmt::format("{} {}\n", style.blue("  -->"), place_of(finding)));
  }
  out.write(note_line(style, "tensor", finding.tensor));
  if (finding.rank >= 0) out.write(note_line(style, "rank", std::to_string(finding.rank)));
  out.write(note_line(style, "found", finding.found));
  out.write(note_line(style, "expected", finding.expected));
  if (!finding.fix.empty()) {
    out.write(fmt::format("   {} {}\n", style.cyan("help:"),
                          quote_for_message(finding.fix, kLongestLine)));
  }
}

/// Returns "(1 error, 2 notes)", without zero counts.
std::string severities(const api::CheckReport& report) {
  std::string text;
  const auto add = [&text](i64 count, std::string_view noun) {
    if (count > 0) text += (text.empty() ? "" : ", ") + plural(count, noun);
  };
  add(report.errors, "error");
  add(report.warnings, "warning");
  add(report.notes, "note");
  return text.empty() ? "" : fmt::format(" ({})", text);
}

std::string data_read(const api::CheckReport& report) {
  if (report.bytes_read == 0) return "data not read (use --read-data)";
  if (report.bytes_read >= report.bytes) {
    return fmt::format("all data read ({})", format_bytes(report.bytes_read));
  }
  return fmt::format("{} of {} of data read", format_bytes(report.bytes_read),
                     format_bytes(report.bytes));
}

}  // namespace

std::vector<RuleFindings> by_rule(const api::CheckReport& report, size_t most) {
  std::vector<RuleFindings> rules;
  for (const check::RuleCount& rule : report.rules) rules.push_back({rule, {}});
  for (const Finding& finding : report.findings) {
    const auto entry = std::find_if(rules.begin(), rules.end(), [&](const RuleFindings& rule) {
      return rule.rule.rule == finding.rule;
    });
    if (entry != rules.end() && entry->listed.size() < most) entry->listed.push_back(&finding);
  }
  return rules;
}

std::string finding_line(const Finding& finding) {
  std::string text = finding.tensor.empty() ? "" : finding.tensor + ": ";
  text += finding.message;
  if (!finding.found.empty()) text += "; found " + finding.found;
  if (!finding.expected.empty()) text += "; expected " + finding.expected;
  if (!finding.fix.empty()) text += ". Fix: " + finding.fix;
  return quote_for_message(text, kLongestLine);
}

std::string findings_summary(const api::CheckReport& report) {
  const i64 count = report.errors + report.warnings + report.notes;
  std::string text = fmt::format("check: {}{}", plural(count, "finding"), severities(report));
  if (report.known > 0) text += fmt::format(", {} known", format_count(report.known));
  return text + fmt::format(" in {:.2f} s, {}, {}; {}", report.seconds,
                            plural(report.files, "file"), plural(report.tensors, "tensor"),
                            data_read(report));
}

void print_findings_text(Output& out, const Style& style, const api::CheckReport& report) {
  std::vector<RuleFindings> rules = by_rule(report, kShownPerRule);
  std::sort(rules.begin(), rules.end(), [](const RuleFindings& a, const RuleFindings& b) {
    if (a.rule.severity != b.rule.severity) return a.rule.severity > b.rule.severity;
    return a.rule.rule < b.rule.rule;
  });
  for (const RuleFindings& rule : rules) {
    for (const Finding* finding : rule.listed) print_finding(out, style, *finding);
    const i64 more = rule.rule.count - std::ssize(rule.listed);
    if (more <= 0) continue;
    out.write(fmt::format("   {} and {} more of {} ({})\n", style.blue("..."), format_count(more),
                          check::rule_info(rule.rule.rule).id,
                          check::rule_info(rule.rule.rule).title));
  }
  out.write(findings_summary(report) + "\n");
}

std::string findings_markdown(const api::CheckReport& report) {
  MarkdownReport out("shardtool " + findings_summary(report));
  Table table{{{"rule"}, {"severity"}, {"findings", true}, {"first"}}, {}};
  for (const RuleFindings& rule : by_rule(report, 1)) {
    const check::RuleInfo& info = check::rule_info(rule.rule.rule);
    table.rows.push_back({fmt::format("{} {}", info.id, info.title),
                          std::string(to_string(rule.rule.severity)), format_count(rule.rule.count),
                          rule.listed.empty() ? "" : finding_line(*rule.listed.front())});
  }
  if (!table.rows.empty()) out.table(table);
  return out.take();
}

void print_rules(Output& out, const check::Profile& profile) {
  Table table{{{"rule"}, {"family"}, {"severity"}, {"title"}}, {}};
  for (const check::RuleInfo& row : check::rule_table()) {
    table.rows.push_back({std::string(row.id), std::string(check::family_of(row.id)),
                          std::string(to_string(profile.severity(row.rule))),
                          std::string(row.title)});
  }
  print_table(out, table, TableFormat::kText);
}

}  // namespace shardtool::cli
