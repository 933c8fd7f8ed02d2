#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/print/findings/findings.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

using check::RuleInfo;
using check::Severity;

constexpr size_t kListedInJunit = 20;

struct Suite {
  std::string cases;
  int tests = 0;
  int failures = 0;
  int skipped = 0;
};

std::string details(const RuleFindings& rule) {
  std::string text;
  for (const check::Finding* finding : rule.listed) {
    text += fmt::format("{}: {}\n", finding->file, finding_line(*finding));
  }
  const i64 more = rule.rule.count - std::ssize(rule.listed);
  if (more > 0) text += fmt::format("and {} more\n", more);
  return text;
}

/// Says why a rule without findings was not tried; empty if it was.
std::string_view why_skipped(const RuleInfo& info, const api::CheckReport& report) {
  if (std::ranges::find(report.off, info.rule) != report.off.end()) return "turned off";
  return info.id.starts_with("ST07") && report.bytes_read == 0 ? "data not read" : "";
}

/// Adds one rule: passed, failed, noted or skipped.
void add_case(Suite& suite, const RuleInfo& info, const RuleFindings* broken,
              const api::CheckReport& report) {
  ++suite.tests;
  suite.cases += fmt::format("    <testcase classname=\"shardtool.check.{}\" name=\"{}\"",
                             xml_escaped(check::family_of(info.id)),
                             xml_escaped(fmt::format("{} {}", info.id, info.title)));
  if (broken == nullptr) {
    const std::string_view why = why_skipped(info, report);
    suite.skipped += why.empty() ? 0 : 1;
    suite.cases += why.empty() ? "/>\n"
                               : fmt::format(
                                     ">\n      <skipped message=\"{}\"/>\n"
                                     "    </testcase>\n",
                                     why);
    return;
  }
  const bool fails = broken->rule.severity >= Severity::kError;
  suite.failures += fails ? 1 : 0;
  const std::string text = xml_escaped(details(*broken));
  suite.cases +=
      fails ? fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n", info.id,
                          xml_escaped(fmt::format("findings: {}", broken->rule.count)), text)
            : fmt::format(">\n      <system-out>{}</system-out>\n", text);
  suite.cases += "    </testcase>\n";
}

/// True for the characters of XML 1.0: no controls but line feed and tab, no U+FFFE and U+FFFF.
bool is_of_xml(std::string_view character) {
  constexpr unsigned char kFirstPrinted = 0x20;
  if (static_cast<unsigned char>(character[0]) < kFirstPrinted)
    return character == "\n" || character == "\t";
  return character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  constexpr size_t kLongest = 4;
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text.substr(0, kLongest));
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(character.size());
    if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "\"") {
      out += "&quot;";
    } else {
      out += length > 0 && is_of_xml(character) ? character : "?";
    }
  }
  return out;
}

void print_findings_junit(Output& out, const api::CheckReport& report) {
  const std::vector<RuleFindings> broken = by_rule(report, kListedInJunit);
  std::map<std::string_view, Suite> suites;  // by id prefix
  int failures = 0;
  constexpr size_t kFamilyLength = 4;
  for (const RuleInfo& info : check::rule_table()) {
    const auto found = std::find_if(broken.begin(), broken.end(), [&](const RuleFindings& rule) {
      return rule.rule.rule == info.rule;
    });
    add_case(suites[info.id.substr(0, kFamilyLength)], info,
             found == broken.end() ? nullptr : &*found, report);
  }
  for (const auto& [family, suite] : suites) failures += suite.failures;
  out.write(
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuites name=\"shardtool check\" tests=\"{}\" failures=\"{}\" "
                  "time=\"{:.3f}\">\n",
                  check::rule_table().size(), failures, report.seconds));
  for (const auto& [family, suite] : suites) {
    out.write(fmt::format(
        "  <testsuite name=\"{} {}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
        "skipped=\"{}\">\n{}  </testsuite>\n",
        family, check::family_of(family), suite.tests, suite.failures, suite.skipped, suite.cases));
  }
  out.write("</testsuites>\n");
}

}  // namespace shardtool::cli
