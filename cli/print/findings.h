#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/print/color.h"
#include "cli/print/json_writer.h"
#include "cli/print/output.h"
#include "lib/api/check.h"

namespace shardtool::cli {

// What a check found, in the formats that people and CI systems read. Of a rule that is broken many
// times the first findings stand for all, and the number is told: 94,000 tensors without a rule are
// one thing to read.

/// One entry per rule with its first findings, in the layout of errors; last the summary.
void print_findings_text(Output& out, const Style& style, const api::CheckReport& report);
/// Workflow commands of GitHub Actions, at most ten of each severity (more are not shown there),
/// and the summary.
void print_findings_github(Output& out, const api::CheckReport& report);
/// SARIF 2.1.0, within the 25,000 results that code scanning takes.
void print_findings_sarif(Output& out, const api::CheckReport& report);
/// JUnit: a suite per family, a case per rule; data rules are skipped when no data was read.
void print_findings_junit(Output& out, const api::CheckReport& report);
/// The code quality report of GitLab.
void print_findings_gitlab(Output& out, const api::CheckReport& report);
/// The fields of the document, after the envelope.
void write_fields(JsonWriter& json, const api::CheckReport& report);

/// "check: 2 findings (1 error, 1 warning) in 0.05 s, 4 files, 291 tensors; data not read (use
/// --read-data)".
std::string findings_summary(const api::CheckReport& report);
/// The same as Markdown with a table of the rules, for the summary page of a job.
std::string findings_markdown(const api::CheckReport& report);

/// The table of rules: of `check --rules`.
void print_rules(Output& out);
void write_rules(JsonWriter& json);

/// The findings of one rule.
struct RuleFindings {
  check::RuleCount rule;
  std::vector<const check::Finding*> listed;  ///< at most `most`
};
std::vector<RuleFindings> by_rule(const api::CheckReport& report, size_t most);

/// "tensor: message; found ..., expected ...": a finding without its place, on one line.
std::string finding_line(const check::Finding& finding);

/// A value, and a property, of a workflow command.
std::string workflow_data(std::string_view text);
std::string workflow_property(std::string_view text);

/// Text of an XML document.
std::string xml_escaped(std::string_view text);

}  // namespace shardtool::cli
