#include <fmt/format.h>

#include <algorithm>

#include "cli/print/report/markdown.h"
#include "cli/print/validate.h"
#include "lib/api/demo.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

using tutorial::DemoRow;

/// Printed characters of a planted fault's diagnosis; the document has all of it.
constexpr size_t kShownWords = 110;

/// "exact", or the largest deviation of all arrays.
std::string outcome(const DemoRow& row) {
  const bool equal = row.forward_equal && row.backward_equal;
  if (row.number == "field") return equal ? "exact" : "differs";
  return fmt::format("{:.1e}{}", row.worst, equal || !row.is_judged ? "" : " differs");
}

/// One line per system, with a column per arithmetic.
Table systems_table(const tutorial::DemoReport& demo) {
  Table table{{{"system"},
               {"field"},
               {"f64"},
               {"f32"},
               {"collectives, and numbers in them"},
               {"in flight"}},
              {}};
  constexpr size_t kFirstOutcome = 1;
  for (const DemoRow& row : demo.rows) {
    if (!row.planted.empty()) continue;
    const auto same = [&](const auto& cells) { return cells.front() == row.system; };
    auto line = std::find_if(table.rows.begin(), table.rows.end(), same);
    if (line == table.rows.end()) {
      table.rows.push_back({row.system, "", "", "", row.collectives, row.in_flight});
      line = table.rows.end() - 1;
    }
    const size_t number = row.number == "field" ? 0 : row.number == "f64" ? 1 : 2;
    (*line)[kFirstOutcome + number] = outcome(row);
  }
  return table;
}

std::string shortened(const std::string& text) {
  return text.size() <= kShownWords ? text : text.substr(0, kShownWords) + " ...";
}

Table faults_table(const tutorial::DemoReport& demo) {
  Table table{{{"planted fault"}, {"in"}, {"seen"}, {"as"}}, {}};
  for (const DemoRow& row : demo.rows) {
    if (row.planted.empty()) continue;
    table.rows.push_back(
        {row.planted, row.system, row.is_as_expected ? "yes" : "no", shortened(row.fault)});
  }
  return table;
}

void write_traffic(JsonWriter& json, const DemoRow& row) {
  json.key("traffic").begin_array();
  for (const tutorial::DemoTraffic& one : row.traffic) {
    json.begin_object().field("pass", one.is_forward ? "forward" : "backward");
    json.field("op", one.operation);
    json.field("predicted_count", one.predicted.count).field("counted", one.counted.count);
    json.field("predicted_bytes", one.predicted.elements * one.number_bytes);
    json.field("counted_bytes", one.counted.elements * one.number_bytes).end_object();
  }
  json.end_array();
}

void write_row(JsonWriter& json, const DemoRow& row) {
  json.begin_object().field("system", row.system).field("number", row.number);
  json.field("planted", row.planted).field("forward_equal", row.forward_equal);
  json.field("backward_equal", row.backward_equal).field("worst", row.worst);
  json.field("adjoint", row.adjoint).field("collectives", row.collectives);
  json.field("expected_collectives", row.expected_collectives);
  write_traffic(json, row);
  json.field("in_flight", row.in_flight);
  json.field("fault", row.fault).field("judged", row.is_judged);
  json.field("as_expected", row.is_as_expected).end_object();
}

}  // namespace

namespace {

void print_systems(ReportWriter& out, const api::DemoRunReport& report) {
  out.fact("demo", fmt::format("y = relu(x W0) W1 on {}, {}", plural(report.demo.devices, "rank"),
                               engine_text(report.engine, report.accelerators)));
  out.table(systems_table(report.demo));
  out.table(faults_table(report.demo));
  for (const std::string& reason : report.demo.not_planted) out.fact("note", reason);
}

void print_unexpected(ReportWriter& out, const api::DemoRunReport& report) {
  for (const DemoRow& row : report.demo.rows) {
    if (row.is_as_expected || !row.is_judged) continue;
    out.fact("fault", fmt::format("{} in {}: {}", row.system, row.number, row.fault));
  }
}

std::string verdict_text(const api::DemoRunReport& report) {
  return fmt::format("{}: directional difference {:.1e}", report.demo.passed ? "pass" : "fail",
                     report.demo.directional);
}

}  // namespace

void print_text(Session& session, const api::DemoRunReport& report) {
  TextReport out(session.out(), session.out_style());
  if (!session.quiet()) print_systems(out, report);
  print_unexpected(out, report);
  if (!session.quiet()) session.out().write(verdict_text(report) + "\n");
}

std::string markdown(const api::DemoRunReport& report) {
  MarkdownReport out("shardtool validate --demo: " + verdict_text(report));
  print_unexpected(out, report);
  print_systems(out, report);
  return out.take();
}

void write_fields(JsonWriter& json, const api::DemoRunReport& report) {
  json.field("verdict", report.demo.passed ? "pass" : "fail").field("engine", report.engine);
  json.field("backend", report.backend).list("accelerators", report.accelerators);
  json.field("ranks", report.demo.devices).field("directional", report.demo.directional);
  json.key("rows").begin_array();
  for (const DemoRow& row : report.demo.rows) write_row(json, row);
  json.end_array().list("not_planted", report.demo.not_planted);
}

}  // namespace shardtool::cli
