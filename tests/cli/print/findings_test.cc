#include "cli/print/findings/findings.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/print/printed.h"

namespace shardtool::cli {
namespace {

using check::CheckRule;
using check::Finding;
using check::Severity;
using nlohmann::json;

/// Returns the output of a print function.
template <class Print>
std::string printed(Print print) {
  std::FILE* const file = std::tmpfile();
  {
    Output out(file);
    print(out);
    out.flush();
  }
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  REQUIRE(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  return text;
}

/// `count` findings of one rule and one of another, with names that need escapes in every format.
api::CheckReport report_of(i64 count) {
  api::CheckReport report;
  for (i64 i = 0; i < std::min<i64>(count, check::Findings::kKeptPerRule); ++i) {
    report.findings.push_back({.rule = CheckRule::kCoverageGap,
                               .message = "elements [0, 4) are on no rank\n::error::injected",
                               .file = "a b/%,:\"<&>.safetensors",
                               .line = 3,
                               .column = 7,
                               .tensor = "w" + std::to_string(i) + "<\"&|%\x01",
                               .rank = 2,
                               .found = "x",
                               .expected = "y",
                               .fix = "do z",
                               .severity = Severity::kError});
  }
  report.findings.push_back({.rule = CheckRule::kUneven,
                             .message = "uneven",
                             .file = "mapping.json",
                             .severity = Severity::kNote});
  report.rules = {{CheckRule::kUneven, Severity::kNote, 1},
                  {CheckRule::kCoverageGap, Severity::kError, count}};
  report.errors = count;
  report.notes = 1;
  return report;
}

TEST_CASE("text shows the worst first, a few of each rule, and one line at the end") {
  const std::string text =
      printed([](Output& out) { print_findings_text(out, Style(false), report_of(94'000)); });
  CHECK(text.starts_with("error[ST0301]: "));
  CHECK(text.find("... and 93,997 more of ST0301 (coverage gap)") != text.npos);
  CHECK(text.find("note[ST0221]") != text.npos);
  CHECK(lines_of(text).size() < 40);
  CHECK(lines_of(text).back().starts_with("check: 94,001 findings (94,000 errors, 1 note)"));
  CHECK(text.find('\x01') == text.npos);
}

TEST_CASE("a workflow command is one line, and nothing in a name ends it") {
  const std::string text =
      printed([](Output& out) { print_findings_github(out, report_of(94'000)); });
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 5);  // one note, three errors, the summary
  CHECK(lines[0].starts_with("::notice file=mapping.json,title=ST0221 "));
  CHECK(lines[1].starts_with(
      "::error file=a b/%25%2C%3A\"<&>.safetensors,line=3,col=7,title=ST0301 coverage gap::w0"));
  CHECK(lines[3].ends_with("(and 93997 more)"));
  CHECK(workflow_data("a\r\nb%") == "a%0D%0Ab%25");
  CHECK(workflow_property("a:b,c") == "a%3Ab%2Cc");
}

TEST_CASE("SARIF has what 2.1.0 requires, and stays below 25,000 results") {
  const json log =
      json::parse(printed([](Output& out) { print_findings_sarif(out, report_of(94'000)); }));
  CHECK(log["version"] == "2.1.0");
  CHECK(log["$schema"].get<std::string>().find("sarif-2.1.0") != std::string::npos);
  REQUIRE(log["runs"].size() == 1);
  const json& run = log["runs"][0];
  const json& driver = run["tool"]["driver"];
  CHECK(driver["name"] == "shardtool");
  std::set<std::string> ids;
  for (const json& rule : driver["rules"]) {
    CHECK(ids.insert(rule["id"]).second);
    CHECK(rule["shortDescription"]["text"].is_string());
    CHECK(rule["fullDescription"]["text"].is_string());
    CHECK(rule["help"]["text"].is_string());
  }
  const std::set<std::string> levels{"none", "note", "warning", "error"};
  CHECK(run["results"].size() == 251);
  for (const json& result : run["results"]) {
    const size_t index = result["ruleIndex"];
    CHECK(driver["rules"].at(index)["id"] == result["ruleId"]);
    CHECK(levels.contains(result["level"]));
    CHECK(result["message"]["text"].is_string());
    for (const json& location : result["locations"]) {
      const json& place = location["physicalLocation"];
      const std::string uri = place["artifactLocation"]["uri"];
      CHECK(uri.find_first_of(" \"<>\\%,") == uri.find('%'));
      CHECK(place["region"]["startLine"].get<int>() >= 1);
    }
  }
  const json& result = run["results"][1];
  CHECK(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] ==
        "a%20b/%25%2C%3A%22%3C%26%3E.safetensors");
  CHECK(result["locations"][0]["physicalLocation"]["region"]["startColumn"] == 7);
  const json& notes = run["invocations"][0]["toolExecutionNotifications"];
  REQUIRE(notes.size() == 1);
  CHECK(notes[0]["message"]["text"] == "ST0301: 94000 findings, 250 of them listed");
}

TEST_CASE("GitLab's report has unique fingerprints that another run repeats") {
  const auto print = [] {
    return printed([](Output& out) { print_findings_gitlab(out, report_of(50)); });
  };
  const json issues = json::parse(print());
  const std::set<std::string> severities{"info", "minor", "major", "critical", "blocker"};
  std::set<std::string> fingerprints;
  REQUIRE(issues.size() == 51);
  for (const json& issue : issues) {
    CHECK(fingerprints.insert(issue["fingerprint"]).second);
    CHECK(severities.contains(issue["severity"]));
    CHECK(issue["description"].is_string());
    CHECK(issue["check_name"].get<std::string>().starts_with("ST0"));
    CHECK_FALSE(issue["location"]["path"].get<std::string>().empty());
    CHECK(issue["location"]["lines"]["begin"].get<int>() >= 1);
  }
  CHECK(json::parse(print()) == issues);
}

/// True if tags nest, attributes are quoted and text has no markup.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = xml.find("?>") + 2;
  while ((at = xml.find_first_of("<>", at)) != xml.npos) {
    if (xml[at] == '>') return false;
    size_t end = at;
    bool quoted = false;
    for (++end; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (xml[end] == '<') return false;
    }
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty();
}

TEST_CASE("JUnit has a case per rule, notes pass, and data rules are skipped without data") {
  const std::string xml =
      printed([](Output& out) { print_findings_junit(out, report_of(94'000)); });
  CHECK(is_well_formed(xml));
  CHECK(xml.find("failures=\"1\"") != xml.npos);
  CHECK(xml.find("<failure type=\"ST0301\" message=\"findings: 94000\">") != xml.npos);
  CHECK(xml.find("and 93980 more") != xml.npos);
  CHECK(xml.find("<skipped message=\"data not read\"/>") != xml.npos);
  CHECK(xml.find("turned off") == xml.npos);
  api::CheckReport report = report_of(1);
  report.off = {check::CheckRule::kFileName};
  const std::string without = printed([&](Output& out) { print_findings_junit(out, report); });
  CHECK(is_well_formed(without));
  CHECK(
      without.find("ST0503 a file name is not portable\">\n      <skipped message=\"turned off") !=
      without.npos);
  size_t cases = 0;
  for (size_t at = 0; (at = xml.find("<testcase ", at)) != xml.npos; ++at) ++cases;
  CHECK(cases == check::rule_table().size());
  CHECK(xml_escaped("<a b=\"c&d\">\x01") == "&lt;a b=&quot;c&amp;d&quot;&gt;?");
  CHECK(xml_escaped("\t\n\r\x1f\x7f\u00e9\ufffd\U0001f600") == "\t\n??\x7f\u00e9\ufffd\U0001f600");
  CHECK(xml_escaped("a\ufffe\uffff\xff") == "a???");
  CHECK_FALSE(is_well_formed("?><a><b></a>"));
}

TEST_CASE("the summary page is a table whose cells cannot be broken out of") {
  const std::string page = findings_markdown(report_of(3));
  const auto lines = lines_of(page);
  REQUIRE(lines.size() == 6);
  for (size_t i = 2; i < lines.size(); ++i) {
    CHECK(lines[i].starts_with("|"));
    CHECK(lines[i].ends_with("|"));
  }
  CHECK(lines[5].find("\\<\"\\&\\|%") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::cli
