#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/print/findings/findings.h"

namespace shardtool::cli {
namespace {

using check::Finding;
using check::RuleInfo;
using check::Severity;

/// Listed findings per rule, which keeps a run below code scanning's limit of 25,000 results.
constexpr size_t kListedInSarif = 250;

std::string_view level_of(Severity severity) {
  if (severity == Severity::kError) return "error";
  return severity == Severity::kWarning ? "warning" : "note";
}

/// Converts a path to a URI reference: percent-encoded, slashes kept.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kKept = "/._-~";
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool keep = byte < 0x80 && (std::isalnum(byte) != 0 || kKept.find(c) != kKept.npos);
    uri += keep ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri;
}

void write_text(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key).begin_object().field("text", text).end_object();
}

void write_rule(JsonWriter& json, const check::RuleCount& rule) {
  const RuleInfo& info = check::rule_info(rule.rule);
  json.begin_object().field("id", info.id);
  write_text(json, "shortDescription", info.title);
  write_text(json, "fullDescription", info.explanation);
  write_text(json, "help", fmt::format("shardtool explain {}", info.id));
  json.key("defaultConfiguration").begin_object();
  json.field("level", level_of(rule.severity)).end_object();
  json.key("properties").begin_object().key("tags").begin_array();
  json.value(check::family_of(info.id)).end_array().end_object().end_object();
}

void write_location(JsonWriter& json, const Finding& finding) {
  json.key("locations").begin_array().begin_object();
  json.key("physicalLocation").begin_object();
  json.key("artifactLocation").begin_object().field("uri", uri_of(finding.file)).end_object();
  json.key("region").begin_object().field("startLine", std::max(finding.line, 1));
  if (finding.line > 0 && finding.column > 0) json.field("startColumn", finding.column);
  json.end_object().end_object();
  if (!finding.tensor.empty()) {
    json.key("logicalLocations").begin_array().begin_object();
    json.field("name", finding.tensor).field("kind", "member").end_object().end_array();
  }
  json.end_object().end_array();
}

void write_result(JsonWriter& json, const Finding& finding, i64 rule_index) {
  json.begin_object().field("ruleId", check::rule_info(finding.rule).id);
  json.field("ruleIndex", rule_index).field("level", level_of(finding.severity));
  write_text(json, "message", finding_line(finding));
  if (!finding.file.empty()) write_location(json, finding);
  json.key("partialFingerprints").begin_object();
  json.field("finding/v1", fmt::format("{}/{}/{}/{}", check::rule_info(finding.rule).id,
                                       finding.file, finding.tensor, finding.rank));
  json.end_object().end_object();
}

/// Notes the rules whose findings are not all listed.
void write_invocation(JsonWriter& json, const std::vector<RuleFindings>& rules) {
  json.key("invocations").begin_array().begin_object().field("executionSuccessful", true);
  json.key("toolExecutionNotifications").begin_array();
  for (const RuleFindings& rule : rules) {
    if (rule.rule.count <= std::ssize(rule.listed)) continue;
    json.begin_object().field("level", "note");
    write_text(
        json, "message",
        fmt::format("{}: {} findings, {} of them listed", check::rule_info(rule.rule.rule).id,
                    rule.rule.count, rule.listed.size()));
    json.end_object();
  }
  json.end_array().end_object().end_array();
}

}  // namespace

void print_findings_sarif(Output& out, const api::CheckReport& report) {
  const std::vector<RuleFindings> rules = by_rule(report, kListedInSarif);
  JsonWriter json([&out](std::string_view text) { out.write(text); });
  json.begin_object();
  json.field("$schema", "https://json.schemastore.org/sarif-2.1.0.json").field("version", "2.1.0");
  json.key("runs").begin_array().begin_object();
  json.key("tool").begin_object().key("driver").begin_object();
  json.field("name", "shardtool").field("version", SHARDTOOL_VERSION);
  json.key("rules").begin_array();
  for (const RuleFindings& rule : rules) write_rule(json, rule.rule);
  json.end_array().end_object().end_object();
  write_invocation(json, rules);
  json.key("results").begin_array();
  for (size_t r = 0; r < rules.size(); ++r) {
    for (const Finding* finding : rules[r].listed) {
      write_result(json, *finding, static_cast<i64>(r));
    }
  }
  json.end_array().end_object().end_array().end_object();
}

}  // namespace shardtool::cli
