#include "cli/print/html/memory_bars.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/print/html/device_groups.h"
#include "cli/print/html/stacked_bars.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostColumns = 12;
constexpr size_t kMostBarsOfPlan = 16;  ///< beside those of another plan

/// One kind of memory: a name, and where a device's document has it.
struct Kind {
  std::string name;
  std::string field;
  std::string weight_class;  ///< of "weights_by_class" instead of `field`
};

/// Training counts its weights itself.
bool trains(const JsonView& device) {
  return device["training_bytes"].count() > 0;
}

std::optional<JsonView> bytes_of(const JsonView& device, const Kind& kind) {
  if (!kind.weight_class.empty()) {
    const JsonView classes = device["weights_by_class"];
    if (trains(device) || !classes.has(kind.weight_class)) return std::nullopt;
    return classes[kind.weight_class];
  }
  if (!device.has(kind.field)) return std::nullopt;
  return device[kind.field];
}

/// Kinds of which some device of the plans has bytes.
std::vector<Kind> kinds_of(std::span<const JsonView> plans) {
  std::vector<Kind> kinds;
  for (const JsonView& plan : plans) {
    for (const std::string& name : plan["devices"][size_t{0}]["weights_by_class"].keys()) {
      if (std::ranges::find(kinds, name, &Kind::weight_class) == kinds.end())
        kinds.push_back({name, "", name});
    }
  }
  kinds.push_back({"weights, gradients, optimizer", "training_bytes", ""});
  kinds.push_back({"gathered weights", "gathered_bytes", ""});
  kinds.push_back({"kv cache", "kv_bytes", ""});
  kinds.push_back({"states", "state_bytes", ""});
  kinds.push_back({"activations", "activation_bytes", ""});
  kinds.push_back({"overhead", "overhead_bytes", ""});
  std::erase_if(kinds, [&](const Kind& kind) {
    return std::ranges::none_of(plans, [&](const JsonView& plan) {
      const auto devices = plan["devices"].elements();
      return std::ranges::any_of(devices, [&](const JsonView& device) {
        const auto bytes = bytes_of(device, kind);
        return bytes && bytes->count() > 0;
      });
    });
  });
  return kinds;
}

/// A device that stands for equal ones.
struct ShownDevice {
  std::string name;
  JsonView device;
};

std::vector<ShownDevice> shown_devices(const JsonView& plan, const std::string& prefix) {
  const JsonView devices = plan["devices"];
  std::vector<ShownDevice> shown;
  for (const DeviceGroup& group : equal_devices(devices))
    shown.push_back({prefix + group.name, devices[group.first]});
  return shown;
}

std::optional<JsonView> budget_of(const JsonView& device) {
  return device.has("budget_bytes") ? std::optional(device["budget_bytes"]) : std::nullopt;
}

StackedBar bar_of(const ShownDevice& shown, const std::vector<Kind>& kinds) {
  StackedBar bar{shown.name, {}, ""};
  i64 total = 0;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const auto bytes = bytes_of(shown.device, kinds[k]);
    if (!bytes) continue;
    bar.parts.push_back(
        {k, *bytes, static_cast<double>(bytes->count()), format_bytes(bytes->count())});
    total += bytes->count();
  }
  bar.end = format_bytes(total);
  if (const auto budget = budget_of(shown.device)) bar.limit = static_cast<double>(budget->count());
  return bar;
}

BarChart chart_of(const std::vector<ShownDevice>& shown, const std::vector<Kind>& kinds) {
  BarChart chart;
  chart.title = "memory by rank";
  for (const Kind& kind : kinds) chart.kinds.push_back(kind.name);
  for (const ShownDevice& one : shown) chart.bars.push_back(bar_of(one, kinds));
  if (const auto budget = budget_of(shown.front().device))
    chart.limit_text = "budget " + format_bytes(budget->count());
  return chart;
}

void write_table(Page& page, std::span<const ShownDevice> shown, const std::vector<Kind>& kinds) {
  std::vector<std::string> titles{"memory"};
  for (const ShownDevice& one : shown) titles.push_back("#" + one.name);
  page.begin_table(titles);
  const auto row = [&](std::string_view name, const auto& value) {
    page.begin_row().text_cell(name);
    for (const ShownDevice& one : shown) {
      const std::optional<JsonView> bytes = value(one.device);
      bytes ? page.bytes_cell(*bytes) : page.text_cell("");
    }
    page.end_row();
  };
  const auto field = [](const char* name) {
    return [name](const JsonView& device) -> std::optional<JsonView> {
      return device.has(name) ? std::optional(device[name]) : std::nullopt;
    };
  };
  for (const Kind& kind : kinds)
    row(kind.name, [&](const JsonView& device) { return bytes_of(device, kind); });
  row("total", field("total_bytes"));
  const auto is_padded = [](const ShownDevice& one) {
    return one.device["padding_bytes"].count() > 0;
  };
  if (std::ranges::any_of(shown, is_padded)) row("padding", field("padding_bytes"));
  page.end_table();
}

void write_first_columns(Page& page, const std::vector<ShownDevice>& shown,
                         const std::vector<Kind>& kinds) {
  write_table(page, std::span(shown).first(std::min(kMostColumns, shown.size())), kinds);
  if (shown.size() > kMostColumns)
    page.note("The table shows the first ranks; the JSON document of this page has all.");
}

/// Returns the devices of both plans: each before beside its after, if there are as many.
std::vector<ShownDevice> side_by_side(const std::vector<ShownDevice>& before,
                                      const std::vector<ShownDevice>& after) {
  std::vector<ShownDevice> all;
  if (before.size() == after.size()) {
    for (size_t i = 0; i < std::min(kMostBarsOfPlan, before.size()); ++i) {
      all.push_back(before[i]);
      all.push_back(after[i]);
    }
    return all;
  }
  for (const auto* shown : {&before, &after}) {
    const size_t most = std::min(kMostBarsOfPlan, shown->size());
    all.insert(all.end(), shown->begin(), shown->begin() + static_cast<std::ptrdiff_t>(most));
  }
  return all;
}

std::optional<JsonView> fullest_of(const std::optional<JsonView>& plan) {
  const i64 rank = (*plan)["verdict"]["fullest_rank"].count();
  for (const JsonView& device : (*plan)["devices"].elements()) {
    if (device["rank"].count() == rank) return device;
  }
  return std::nullopt;
}

void write_fullest(Page& page, const BeforeAfter& plans, const std::vector<Kind>& kinds) {
  const BeforeAfter fullest{fullest_of(plans.before), fullest_of(plans.after)};
  begin_changes(page, "memory of the fullest rank");
  for (const Kind& kind : kinds) {
    const auto bytes = [&](const std::optional<JsonView>& device) {
      return device ? bytes_of(*device, kind) : std::nullopt;
    };
    write_change(page, kind.name, {bytes(fullest.before), bytes(fullest.after)}, &Page::bytes);
  }
  write_change(page, "total", value_at(fullest, {"total_bytes"}), &Page::bytes);
  write_change(page, "budget", value_at(fullest, {"budget_bytes"}), &Page::bytes);
  write_change(page, "copies of what a lower rank has", value_at(fullest, {"replicated_bytes"}),
               &Page::bytes);
  write_change(page, "padding", value_at(fullest, {"padding_bytes"}), &Page::bytes);
  write_change(page, "tokens that the cache can hold", value_at(fullest, {"kv_capacity_tokens"}),
               &Page::count);
  page.end_table();
}

}  // namespace

void write_memory_bars(Page& page, const JsonView& plan) {
  const std::vector<Kind> kinds = kinds_of(std::span(&plan, 1));
  const std::vector<ShownDevice> shown = shown_devices(plan, "");
  write_bars(page, chart_of(shown, kinds));
  write_first_columns(page, shown, kinds);
}

void write_memory_change(Page& page, const BeforeAfter& plans) {
  const std::vector<JsonView> both{*plans.before, *plans.after};
  const std::vector<Kind> kinds = kinds_of(both);
  const std::vector<ShownDevice> before = shown_devices(*plans.before, "before: ");
  const std::vector<ShownDevice> after = shown_devices(*plans.after, "after: ");
  const std::vector<ShownDevice> shown = side_by_side(before, after);
  BarChart chart = chart_of(shown, kinds);
  constexpr double kNames = 150;
  chart.names_width = kNames;
  if (before.size() == after.size()) chart.bars_together = 2;
  write_bars(page, chart);
  if (shown.size() < before.size() + after.size())
    page.note("The chart shows the first ranks of each; the JSON document of this page has all.");
  write_fullest(page, plans, kinds);
  if (shown.size() == 2) return;
  page.html().open("details").element("summary", "All ranks of the chart as a table");
  write_first_columns(page, shown, kinds);
  page.html().close();
}

}  // namespace shardtool::cli
