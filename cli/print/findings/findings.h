#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/print/color.h"
#include "cli/print/output.h"
#include "lib/api/check.h"
#include "lib/base/json_writer.h"
#include "lib/check/profile.h"

namespace shardtool::cli {

// Formats of check findings for people and CI systems. Only the first findings of a
// rule are listed, with the total count: 94,000 tensors without a rule are one entry.

/// Prints one entry per rule with its first findings, in the layout of errors, then the summary.
void print_findings_text(Output& out, const Style& style, const api::CheckReport& report);
/// Prints workflow commands of GitHub Actions, at most ten per severity (GitHub shows no more), and
/// the summary.
void print_findings_github(Output& out, const api::CheckReport& report);
/// Prints SARIF 2.1.0 within the 25,000 results that GitHub code scanning accepts.
void print_findings_sarif(Output& out, const api::CheckReport& report);
/// Prints JUnit XML: a suite per family, a case per rule. Data rules are skipped if no data was
/// read.
void print_findings_junit(Output& out, const api::CheckReport& report);
/// Prints the code quality report of GitLab.
void print_findings_gitlab(Output& out, const api::CheckReport& report);
/// Writes the fields of the document after the envelope.
void write_fields(JsonWriter& json, const api::CheckReport& report);

/// Returns "check: 2 findings (1 error, 1 warning) in 0.05 s, 4 files, 291 tensors; data not read
/// (use --read-data)".
std::string findings_summary(const api::CheckReport& report);
/// Returns the summary as Markdown with a table of the rules, for the summary page of a job and for
/// a comment of a pull request.
std::string findings_markdown(const api::CheckReport& report);

/// Prints the table of rules for `check --rules`, with the severities of a profile.
void print_rules(Output& out, const check::Profile& profile);
void write_rules(JsonWriter& json, const check::Profile& profile);

/// Findings of one rule.
struct RuleFindings {
  check::RuleCount rule;
  std::vector<const check::Finding*> listed;  ///< at most `most`
};
std::vector<RuleFindings> by_rule(const api::CheckReport& report, size_t most);

/// Formats a finding without its place on one line: "tensor: message; found ..., expected ...".
std::string finding_line(const check::Finding& finding);

/// Escape the message and a property of a GitHub workflow command.
std::string workflow_data(std::string_view text);
std::string workflow_property(std::string_view text);

/// Escapes text for XML 1.0, with "?" for what it cannot have.
std::string xml_escaped(std::string_view text);

}  // namespace shardtool::cli
