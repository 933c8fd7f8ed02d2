#include <fmt/format.h>

#include "cli/print/html/each_page.h"

namespace shardtool::cli {
namespace {

std::string place_of(const JsonView& finding) {
  std::string place;
  if (finding.has("file")) place = finding["file"].text();
  if (finding.has("line")) place += fmt::format(":{}", finding["line"].count());
  if (finding.has("tensor")) place += (place.empty() ? "" : ", ") + finding["tensor"].text();
  if (finding.has("rank")) place += fmt::format(", rank {}", finding["rank"].count());
  return place;
}

void write_finding(Page& page, const JsonView& finding) {
  page.begin_row().text_cell(finding["severity"].text()).text_cell(finding["id"].text());
  page.cell([&] {
    page.text(finding["message"].text());
    for (const auto& [field, name] :
         {std::pair("found", "found: "), std::pair("expected", "expected: "),
          std::pair("help", "help: ")}) {
      if (finding.has(field))
        page.html().element("p", name + finding[field].text(), {{"class", "soft"}});
    }
  });
  page.text_cell(place_of(finding)).end_row();
}

}  // namespace

void write_check(Page& page, const JsonView& check) {
  write_title(page, "Check", check);
  const JsonView summary = check["summary"];
  const bool is_good = check["status"].text() == "ok";
  page.begin_verdict(is_good ? "good" : "bad");
  page.text(is_good ? "Passed: " : "Found: ");
  for (const auto& [field, noun] :
       {std::pair("errors", " error"), std::pair("warnings", " warning"),
        std::pair("notes", " note")}) {
    page.count(summary[field]).text(noun).text(summary[field].count() == 1 ? ", " : "s, ");
  }
  page.text("in ");
  page.count(summary["tensors"]).text(" tensors of ").count(summary["files"]).text(" files, ");
  page.bytes(summary["bytes"]).text("; ").bytes(summary["bytes_read"]).text(" of data were read.");
  page.end_verdict();
  if (!check["rules"].empty()) {
    page.begin_section("Findings by rule");
    page.begin_table({"rule", "severity", "#findings"});
    for (const JsonView& rule : check["rules"].elements()) {
      page.begin_row().text_cell(rule["id"].text()).text_cell(rule["severity"].text());
      page.count_cell(rule["count"]).end_row();
    }
    page.end_table().end_section();
  }
  if (check["findings"].empty()) return;
  page.begin_section("Findings");
  page.begin_table({"severity", "rule", "message", "place"});
  for (const JsonView& finding : check["findings"].elements()) write_finding(page, finding);
  page.end_table();
  page.note("The first findings of each rule; the table above has their numbers.");
  page.end_section();
}

}  // namespace shardtool::cli
