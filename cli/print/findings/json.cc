#include "cli/print/findings/findings.h"

namespace shardtool::cli {
namespace {

void write_finding(JsonWriter& json, const check::Finding& finding) {
  const check::RuleInfo& info = check::rule_info(finding.rule);
  const auto text = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) json.field(name, value);
  };
  json.begin_object().field("id", info.id).field("severity", to_string(finding.severity));
  json.field("title", info.title).field("message", finding.message);
  text("file", finding.file);
  if (finding.line > 0) json.field("line", finding.line);
  if (finding.line > 0 && finding.column > 0) json.field("column", finding.column);
  text("tensor", finding.tensor);
  if (finding.axis >= 0) json.field("axis", finding.axis);
  if (finding.rank >= 0) json.field("rank", finding.rank);
  text("found", finding.found);
  text("expected", finding.expected);
  text("help", finding.fix);
  json.end_object();
}

}  // namespace

void write_rules(JsonWriter& json, const check::Profile& profile) {
  json.key("catalogue").begin_array();
  for (const check::RuleInfo& row : check::rule_table()) {
    json.begin_object().field("id", row.id).field("family", check::family_of(row.id));
    json.field("severity", to_string(profile.severity(row.rule))).field("title", row.title);
    json.field("explanation", row.explanation).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const api::CheckReport& report) {
  json.key("findings").begin_array();
  for (const check::Finding& finding : report.findings) write_finding(json, finding);
  json.end_array();
  // The list above has only the first findings of each rule; these are the totals.
  json.key("rules").begin_array();
  for (const check::RuleCount& rule : report.rules) {
    json.begin_object().field("id", check::rule_info(rule.rule).id);
    json.field("severity", to_string(rule.severity)).field("count", rule.count).end_object();
  }
  json.end_array();
  json.key("summary").begin_object();
  json.field("errors", report.errors).field("warnings", report.warnings);
  json.field("notes", report.notes).field("known", report.known);
  json.field("files", report.files).field("tensors", report.tensors);
  json.field("bytes", report.bytes).field("bytes_read", report.bytes_read);
  json.field("seconds", report.seconds).end_object();
}

}  // namespace shardtool::cli
