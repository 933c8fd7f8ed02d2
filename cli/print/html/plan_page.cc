#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/print/html/each_page.h"
#include "cli/print/html/heatmaps.h"
#include "cli/print/html/line_chart.h"
#include "cli/print/html/memory_bars.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

const char* verdict_kind(const JsonView& verdict) {
  if (!verdict.has("fits")) return "plain";
  return verdict["fits"].truth() ? "good" : "bad";
}

void write_memory_verdict(Page& page, const JsonView& plan) {
  const JsonView verdict = plan["verdict"];
  page.begin_verdict(verdict_kind(verdict));
  if (verdict.has("fits")) {
    page.text(verdict["fits"].truth() ? "Fits: " : "Does not fit: ");
    page.bytes(verdict["total_bytes"]).text(" of ").bytes(verdict["budget_bytes"]);
  } else {
    page.text("Needs ").bytes(verdict["total_bytes"]);
  }
  page.text(" on rank ").count(verdict["fullest_rank"]);
  page.text(fmt::format(", the fullest of {} ranks; the largest part is {}.",
                        plan["devices"].size(), verdict["largest_part"].text()));
  page.end_verdict();
  if (!plan.has("replicas") || plan["replicas"]["number"].count() == 1) return;
  const JsonView replicas = plan["replicas"];
  page.html().open("p").text("Training has ");
  page.count(replicas["number"]).text(" replicas of these ranks, ");
  page.count(replicas["devices"]).text(" devices in all, with ZeRO stage ");
  page.count(replicas["zero"]).text(".");
  page.html().close();
}

/// "tp=4", "weights of 4 bits" or "--memory-fraction down to 0.3".
std::string advice_text(const JsonView& advice) {
  const std::string what = advice["what"].text(), value = advice["value"].text();
  if (what == "devices") return value;
  if (what == "weight bits") return fmt::format("weights of {} bits", value);
  return "--memory-fraction down to " + value;
}

void write_advice(Page& page, const JsonView& verdict) {
  const JsonView advice = verdict["advice"];
  if (advice.empty()) return;
  const bool fits = verdict.has("fits") && verdict["fits"].truth();
  page.html().open("p").text(fits ? "Would fit, too: " : "Would fit: ");
  bool is_first = true;
  for (const JsonView& one : advice.elements()) {
    page.text((is_first ? "" : "; ") + advice_text(one));
    is_first = false;
    page.text(" (").bytes(one["total_bytes"]).text(" on the fullest rank)");
  }
  page.text(".");
  page.html().close();
}

void write_reshard_verdict(Page& page, const JsonView& reshard) {
  page.begin_verdict("plain");
  page.bytes(reshard["bytes_moved"]).text(" of ").bytes(reshard["bytes_total"]);
  page.text(fmt::format(" move from {} to {}, ", reshard["from"].text(), reshard["to"].text()));
  page.bytes(reshard["bytes_kept"])
      .text(" stay. The least that any plan with these ranks can move is ");
  page.bytes(reshard["lower_bound"]).text(".");
  page.end_verdict();
}

void write_loads(Page& page, const JsonView& reshard) {
  constexpr size_t kMost = 64;
  const auto ranks = reshard["per_rank"].elements();
  page.html().open("details").element("summary", "What each rank sends and receives as a table");
  page.begin_table({"#rank", "#sends", "#receives", "#peak memory"});
  for (size_t r = 0; r < std::min(kMost, ranks.size()); ++r) {
    page.begin_row().count_cell(ranks[r]["rank"]).bytes_cell(ranks[r]["send"]);
    page.bytes_cell(ranks[r]["recv"]).bytes_cell(ranks[r]["peak_bytes"]).end_row();
  }
  page.end_table();
  page.note_rest(ranks.size(), kMost, "ranks");
  page.html().close();
}

/// Draws the memory of the busiest rank over the order in which tensors move.
void write_levels(Page& page, const JsonView& reshard, const JsonView& verdict) {
  const JsonView memory = reshard["memory"];
  const std::vector<JsonView> levels = memory["levels"].elements();
  if (levels.empty()) return;
  LineChart chart;
  chart.title = "memory of the busiest rank over the tensors in their order";
  double tensors = 0;
  const auto add = [&](const JsonView& bytes) {
    chart.points.push_back({tensors, bytes.number(), bytes, ""});
  };
  add(memory["begin_bytes"]);
  for (const JsonView& level : levels) {
    add(level["first_bytes"]);
    tensors += level["tensors"].number();
    add(level["last_bytes"]);
    add(level["after_bytes"]);
  }
  chart.x = {"tensors that have moved", 1, [](double n) { return format_count(std::llround(n)); }};
  chart.y = bytes_axis("memory", reshard["peak_bytes"].number());
  if (verdict.has("budget_bytes")) {
    chart.limit_y = verdict["budget_bytes"].number();
    chart.limit_text = "budget " + format_bytes(verdict["budget_bytes"].count());
  }
  page.begin_section("Peak memory over the order of tensors");
  page.html().open("p", {{"class", "soft"}});
  page.text("Weights on rank ").count(memory["rank"]);
  page.text(
      ", the busiest, while tensors move one by one: what is still there of the old layout, what "
      "is "
      "there of the new one, and the tensor on its way. The peak is ");
  page.bytes(reshard["peak_bytes"]).text("; no order has less than ");
  page.bytes(reshard["peak_bound"]).text(".");
  page.html().close();
  write_line_chart(page, chart);
  constexpr size_t kMost = 40;
  page.html().open("details").element("summary", "The order of tensors as a table");
  page.begin_table(
      {"first tensor", "#tensors", "#while the first moves", "#while the last moves", "#after"});
  for (size_t l = 0; l < std::min(kMost, levels.size()); ++l) {
    page.begin_row().text_cell(levels[l]["tensor"].text()).count_cell(levels[l]["tensors"]);
    for (const char* field : {"first_bytes", "last_bytes", "after_bytes"})
      page.bytes_cell(levels[l][field]);
    page.end_row();
  }
  page.end_table();
  page.note_rest(levels.size(), kMost);
  page.html().close();
  page.end_section();
}

void write_reshard(Page& page, const JsonView& reshard) {
  page.begin_section("What moves");
  write_pairs(page, reshard);
  page.begin_table({"way", "#bytes moved"});
  page.begin_row().text_cell("directly, as planned").bytes_cell(reshard["bytes_moved"]).end_row();
  if (reshard.has("renumbered")) {
    page.begin_row().text_cell("with the new ranks renumbered");
    page.bytes_cell(reshard["renumbered"]["bytes_moved"]).end_row();
  }
  page.begin_row().text_cell("if every rank gathered whole tensors first");
  page.bytes_cell(reshard["gather_first_bytes"]).end_row().end_table();
  if (reshard.has("time")) {
    page.begin_table({"time of", "#at least"});
    for (const auto& [field, name] :
         {std::pair("network_us", "the network"), std::pair("load_us", "loading from storage"),
          std::pair("read_us", "reading files"), std::pair("write_us", "writing files")}) {
      if (!reshard["time"].has(field)) continue;
      page.begin_row().text_cell(name).time_cell(reshard["time"][field]).end_row();
    }
    page.end_table();
  }
  write_loads(page, reshard);
  page.end_section();
}

void write_layouts(Page& page, const JsonView& rows, const char* heading) {
  page.begin_section(heading);
  page.begin_table(
      {"layout", "#devices", "#weights", "#kv cache", "#total", "#decode step", "fits"});
  for (const JsonView& row : rows.elements()) {
    page.begin_row().text_cell(row["name"].text()).count_cell(row["devices"]);
    if (row.has("refusal")) {
      page.text_cell("").text_cell("").text_cell("").text_cell("").text_cell(row["refusal"].text());
      page.end_row();
      continue;
    }
    page.bytes_cell(row["weights_bytes"])
        .bytes_cell(row["kv_bytes"])
        .bytes_cell(row["total_bytes"]);
    row.has("decode_us") ? page.time_cell(row["decode_us"]) : page.text_cell("");
    page.text_cell(row.has("fits") ? (row["fits"].truth() ? "yes" : "no") : "").end_row();
  }
  page.end_table().end_section();
}

/// The column of a step's table that has the time of its bound.
std::string_view bound_words(std::string_view bound) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"compute", "products"}, {"comm", "collectives"}, {"launch", "launches"}};
  for (const auto& [name, words] : kWords) {
    if (name == bound) return words;
  }
  return bound;
}

void write_step(Page& page, std::string_view name, const JsonView& step) {
  page.begin_row().text_cell(name);
  for (const char* field : {"compute_us", "memory_us", "comm_us", "launch_us", "step_us"})
    page.time_cell(step[field]);
  page.text_cell(bound_words(step["bound"].text())).end_row();
}

void write_comm(Page& page, const JsonView& comm) {
  const auto phases = comm.keys();
  const bool is_timed = std::ranges::any_of(phases, [&](const std::string& phase) {
    return !comm[phase].empty() && comm[phase][size_t{0}].has("time_us");
  });
  std::vector<std::string> titles{"phase",  "axis",     "operation",
                                  "#calls", "#payload", "#sent per rank"};
  if (is_timed) titles.emplace_back("#time of a call");
  page.begin_table(titles);
  for (const std::string& phase : phases) {
    for (const JsonView& row : comm[phase].elements()) {
      page.begin_row().text_cell(phase).text_cell(row["axis"].text()).text_cell(row["op"].text());
      page.count_cell(row["count"])
          .bytes_cell(row["payload_bytes"])
          .bytes_cell(row["wire_bytes_per_rank"]);
      if (is_timed) page.time_cell(row["time_us"]);
      page.end_row();
    }
  }
  page.end_table();
}

void write_cost(Page& page, const JsonView& plan) {
  if (!plan.has("comm")) return;
  page.begin_section("A step");
  if (plan.has("roofline")) {
    const JsonView roofline = plan["roofline"];
    page.begin_table(
        {"step", "#products", "#memory", "#collectives", "#launches", "#all", "bound by"});
    if (roofline.has("prefill")) write_step(page, "prefill", roofline["prefill"]);
    write_step(page, "decode", roofline);
    page.end_table();
    page.note(fmt::format("A roofline on the profile {}, no forecast.", plan["profile"].text()));
  }
  write_comm(page, plan["comm"]);
  if (plan["comm"].has("training"))
    page.note("Collectives of weights and gradients in a step of training with one micro-batch.");
  page.end_section();
}

}  // namespace

void write_plan(Page& page, const JsonView& plan) {
  write_title(page, "Plan of " + plan["source"].text(), plan);
  write_memory_verdict(page, plan);
  write_advice(page, plan["verdict"]);
  if (plan.has("reshard")) write_reshard_verdict(page, plan["reshard"]);
  page.begin_section("Memory of each device");
  write_memory_bars(page, plan);
  page.end_section();
  write_rules(page, plan, static_cast<i64>(plan["devices"].size()));
  if (plan.has("reshard")) write_reshard(page, plan["reshard"]);
  page.begin_section("Weights by layer");
  write_layers(page, plan);
  page.end_section();
  if (plan.has("reshard")) write_levels(page, plan["reshard"], plan["verdict"]);
  write_cost(page, plan);
  if (plan.has("what_if")) write_layouts(page, plan["what_if"], "Other numbers of devices");
  if (plan.has("compare")) write_layouts(page, plan["compare"], "Other mappings");
  write_list(page, "Warnings", plan["warnings"]);
}

}  // namespace shardtool::cli
