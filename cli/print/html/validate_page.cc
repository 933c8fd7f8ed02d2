#include <fmt/format.h>

#include "cli/print/html/each_page.h"

namespace shardtool::cli {
namespace {

void write_tiers(Page& page, const JsonView& tiers) {
  page.begin_section("Proofs and comparisons");
  page.begin_table({"tier", "arithmetic", "verdict", "#compared", "#mismatches"});
  for (const JsonView& tier : tiers.elements()) {
    page.begin_row().text_cell(tier["tier"].text()).text_cell(tier["name"].text());
    page.text_cell(tier["verdict"].text())
        .count_cell(tier["checked"])
        .count_cell(tier["mismatches"]);
    page.end_row();
  }
  page.end_table().end_section();
}

void write_faults(Page& page, const JsonView& faults) {
  if (faults.empty()) return;
  page.begin_section("Where it differs first");
  page.begin_table({"tier", "layer", "op", "tensor", "#rank", "#mismatches", "diagnosis"});
  for (const JsonView& fault : faults.elements()) {
    const auto text = [&](const char* field) {
      page.text_cell(fault.has(field) ? fault[field].text() : "");
    };
    page.begin_row();
    for (const char* field : {"tier", "layer", "op", "tensor"}) text(field);
    page.count_cell(fault["rank"]).count_cell(fault["mismatches"]);
    text("diagnosis");
    page.end_row();
  }
  page.end_table().end_section();
}

void write_problems(Page& page, const JsonView& validate) {
  if (!validate["findings"].empty()) {
    page.begin_section("Findings");
    page.begin_table({"rule", "message", "tensor", "found", "expected"});
    for (const JsonView& finding : validate["findings"].elements()) {
      page.begin_row();
      for (const char* field : {"id", "message", "tensor", "found", "expected"})
        page.text_cell(finding[field].text());
      page.end_row();
    }
    page.end_table().end_section();
  }
  if (validate["numbers"].empty()) return;
  page.begin_section("Weights that are no numbers");
  page.begin_table({"tensor", "#rank", "#NaN", "#infinite"});
  for (const JsonView& odd : validate["numbers"].elements()) {
    page.begin_row().text_cell(odd["tensor"].text()).count_cell(odd["rank"]);
    page.count_cell(odd["nan"]).count_cell(odd["infinite"]).end_row();
  }
  page.end_table().note("Rank -1 is the unsharded model.").end_section();
}

void write_bytes(Page& page, const JsonView& bytes) {
  page.html().open("p");
  page.count(bytes["compared"]).text(" of ").count(bytes["parts"]);
  page.text(
      fmt::format(" shards were compared byte for byte with the {}; ", bytes["against"].text()));
  page.count(bytes["differing"]).text(" differ.");
  page.html().close();
}

void write_collectives(Page& page, const JsonView& collectives) {
  if (collectives.empty()) return;
  page.begin_section("Collectives, as predicted and as counted");
  page.begin_table({"tier", "operation", "axis", "#calls predicted", "#counted", "#bytes predicted",
                    "#counted"});
  for (const JsonView& row : collectives.elements()) {
    page.begin_row()
        .text_cell(row["tier"].text())
        .text_cell(row["op"].text())
        .text_cell(row["axis"].text());
    page.count_cell(row["predicted_count"]).count_cell(row["counted"]);
    page.bytes_cell(row["predicted_bytes"]).bytes_cell(row["counted_bytes"]).end_row();
  }
  page.end_table().end_section();
}

}  // namespace

void write_validate(Page& page, const JsonView& validate) {
  page.html()
      .open("header")
      .element("h1", fmt::format("Validation of {} shards on {}", validate["family"].text(),
                                 validate["mesh"].text()))
      .close();
  const bool is_pass = validate["verdict"].text() == "pass";
  page.begin_verdict(is_pass ? "good" : "bad");
  page.text(fmt::format("{}: ", validate["verdict"].text()))
      .count(validate["ranks"])
      .text(" ranks, ");
  page.count(validate["layers"]).text(" layers, ");
  page.bytes(validate["bytes_read"]).text(" read; ");
  page.text(validate["reference"].truth() ? "compared with the unsharded model."
                                          : "compared with the manifest only.");
  page.end_verdict();
  if (validate.has("bytes")) write_bytes(page, validate["bytes"]);
  write_tiers(page, validate["tiers"]);
  write_problems(page, validate);
  write_faults(page, validate["faults"]);
  write_collectives(page, validate["collectives"]);
  write_list(page, "Not proved", validate["not_proved"]);
  write_list(page, "Notes", validate["notes"]);
}

}  // namespace shardtool::cli
