#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/print/html/before_after.h"
#include "cli/print/html/each_page.h"
#include "cli/print/html/layout_change.h"
#include "cli/print/html/memory_bars.h"
#include "cli/print/html/stacked_bars.h"
#include "cli/print/plan_change.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostChanges = 200;  ///< rows of the table of all values

std::string beginning_of(const BeforeAfter& fits) {
  if (!fits.after) return "";
  const bool fits_after = fits.after->truth();
  if (!fits.before) return fits_after ? "Fits: " : "Does not fit: ";
  if (fits.before->truth() == fits_after) return fits_after ? "Both fit: " : "Neither fits: ";
  return fits_after ? "Fits now: " : "Fits no longer: ";
}

const char* verdict_kind(const BeforeAfter& fits) {
  if (!fits.after) return "plain";
  return fits.after->truth() ? "good" : "bad";
}

void write_verdict(Page& page, const BeforeAfter& plans) {
  const BeforeAfter fits = value_at(plans, {"verdict", "fits"});
  page.begin_verdict(verdict_kind(fits)).text(beginning_of(fits));
  const std::string before = mesh_text(*plans.before);
  const std::string after = mesh_text(*plans.after);
  page.text(before == after ? "on " + after : fmt::format("on {} instead of {}", after, before));
  page.text(" the fullest rank needs ");
  write_instead(page, value_at(plans, {"verdict", "total_bytes"}), &Page::bytes);
  const BeforeAfter budget = value_at(plans, {"verdict", "budget_bytes"});
  if (budget.after) page.text(" of ").bytes(*budget.after);
  const BeforeAfter step = value_at(plans, {"roofline", "step_us"});
  if (step.after) {
    page.text("; a decode step takes at least ");
    write_instead(page, step, &Page::microseconds);
  }
  const BeforeAfter moved = value_at(plans, {"reshard", "bytes_moved"});
  if (moved.after) {
    page.text("; the reshard moves ");
    write_instead(page, moved, &Page::bytes);
  }
  page.text(".").end_verdict();
}

constexpr const char* kPassParts[] = {"products, weights and cache", "collectives", "launches"};

/// Returns the bar of a pass; what products and memory take together is not in the document.
StackedBar pass_bar(const std::string& name, const JsonView& pass) {
  const auto time = [](const JsonView& value) { return plan::format_modelled_us(value.number()); };
  const JsonView comm = pass["comm_us"];
  const JsonView launch = pass["launch_us"];
  const double rest = pass["step_us"].number() - comm.number() - launch.number();
  StackedBar bar{name, {}, time(pass["step_us"])};
  bar.parts.push_back({0, std::nullopt, std::max(0.0, rest), plan::format_modelled_us(rest)});
  bar.parts.push_back({1, comm, comm.number(), time(comm)});
  bar.parts.push_back({2, launch, launch.number(), time(launch)});
  return bar;
}

void write_pass(Page& page, const std::string& name, const BeforeAfter& pass) {
  if (pass.is_absent()) return;
  BarChart chart;
  chart.title = "time of " + name + " by cause";
  chart.kinds.assign(std::begin(kPassParts), std::end(kPassParts));
  if (pass.before && pass.after) chart.bars_together = 2;
  if (pass.before) chart.bars.push_back(pass_bar(name + " before", *pass.before));
  if (pass.after) chart.bars.push_back(pass_bar(name + " after", *pass.after));
  write_bars(page, chart);
  begin_changes(page, name);
  for (const auto& [field, words] :
       {std::pair("step_us", "all"), std::pair("compute_us", "products"),
        std::pair("memory_us", "reading weights and cache"), std::pair("comm_us", "collectives"),
        std::pair("launch_us", "launches")})
    write_change(page, words, value_at(pass, {field}), &Page::microseconds);
  page.end_table();
}

void write_times(Page& page, const BeforeAfter& plans) {
  const BeforeAfter decode = value_at(plans, {"roofline"});
  if (decode.is_absent()) return;
  page.begin_section("Time of a pass");
  write_pass(page, "decode", decode);
  write_pass(page, "prefill", value_at(plans, {"roofline", "prefill"}));
  for (const auto& [side, plan] :
       {std::pair("before", plans.before), std::pair("after", plans.after)})
    if (plan->has("untimed"))
      page.note(fmt::format("Not timed {}: {}.", side, (*plan)["untimed"].text()));
  page.note(
      "A roofline, no forecast: the first part of a bar is the rest of the pass, in which products "
      "and reads overlap.");
  page.end_section();
}

void write_reshard(Page& page, const BeforeAfter& plans) {
  const BeforeAfter reshard = value_at(plans, {"reshard"});
  if (reshard.is_absent()) return;
  page.begin_section("What moves");
  begin_changes(page, "reshard");
  for (const auto& [field, words] :
       {std::pair("bytes_moved", "bytes moved"), std::pair("lower_bound", "the least of any plan"),
        std::pair("bytes_kept", "bytes that stay"),
        std::pair("inter_node_bytes", "bytes between nodes"),
        std::pair("peak_bytes", "peak memory of the busiest rank")})
    write_change(page, words, value_at(reshard, {field}), &Page::bytes);
  write_change(page, "transfers", value_at(reshard, {"transfers_count"}), &Page::count);
  for (const auto& [field, words] : {std::pair("network_us", "time of the network"),
                                     std::pair("load_us", "time of loading from storage"),
                                     std::pair("read_us", "time of reading files"),
                                     std::pair("write_us", "time of writing files")})
    write_change(page, words, value_at(reshard, {"time", field}), &Page::microseconds);
  page.end_table().end_section();
}

void write_value(Page& page, const JsonView& change, const char* side) {
  page.cell(
      [&] {
        const std::string json = change.has(side) ? change[side].json() : "";
        const std::string text = value_text(change["field"].text(), json);
        is_number(json) ? page.shown(change[side], text) : page.text(text);
      },
      true);
}

void write_all_values(Page& page, const JsonView& changes) {
  page.begin_section("Values that differ");
  page.html().open("details").element(
      "summary", changes.size() == 1 ? "One value" : fmt::format("{} values", changes.size()));
  page.begin_table({"value", "#before", "#after", "#change"});
  const std::vector<JsonView> all = changes.elements();
  for (size_t i = 0; i < std::min(kMostChanges, all.size()); ++i) {
    page.begin_row().text_cell(all[i]["field"].text());
    write_value(page, all[i], "a");
    write_value(page, all[i], "b");
    const auto side = [&](const char* name) {
      return all[i].has(name) ? std::optional(all[i][name]) : std::nullopt;
    };
    page.cell([&] { page.text(growth_text({side("a"), side("b")})); }, true).end_row();
  }
  page.end_table();
  page.note_rest(all.size(), kMostChanges);
  page.html().close();
  page.note("Values of single ranks and tensors are in `plan diff --json`.");
  page.end_section();
}

void write_sources(Page& page, const BeforeAfter& plans) {
  page.html().open("header").element("h1", "Difference of two plans");
  const std::string before = (*plans.before)["source"].text();
  const std::string after = (*plans.after)["source"].text();
  page.note(before == after ? after : fmt::format("before: {}; after: {}", before, after));
  page.html().close();
}

}  // namespace

void write_plan_diff(Page& page, const JsonView& diff) {
  const BeforeAfter plans{diff["plans"]["a"], diff["plans"]["b"]};
  const JsonView changes = diff["changes"];
  write_sources(page, plans);
  if (diff["equal"].truth()) {
    page.begin_verdict("good").text("The plans are equal.").end_verdict();
    return;
  }
  write_verdict(page, plans);
  page.begin_section("Memory of each device");
  write_memory_change(page, plans);
  page.end_section();
  write_times(page, plans);
  write_layout_change(page, plans);
  write_reshard(page, plans);
  write_all_values(page, changes);
}

}  // namespace shardtool::cli
