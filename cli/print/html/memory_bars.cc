#include "cli/print/html/memory_bars.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/html/device_groups.h"
#include "cli/print/html/stacked_bars.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

/// One kind of memory: a name, and where a device's document has it.
struct Kind {
  std::string name;
  std::string field;
  std::string weight_class;  ///< of "weights_by_class" instead of `field`
};

std::optional<JsonView> bytes_of(const JsonView& device, const Kind& kind) {
  if (!kind.weight_class.empty()) return device["weights_by_class"][kind.weight_class];
  if (!device.has(kind.field)) return std::nullopt;
  return device[kind.field];
}

/// Kinds of which some device has bytes. Training counts its weights itself.
std::vector<Kind> kinds_of(const JsonView& devices) {
  std::vector<Kind> kinds;
  const bool trains = devices[0]["training_bytes"].count() > 0;
  if (!trains) {
    for (const std::string& name : devices[0]["weights_by_class"].keys())
      kinds.push_back({name, "", name});
  }
  kinds.push_back({"weights, gradients, optimizer", "training_bytes", ""});
  kinds.push_back({"gathered weights", "gathered_bytes", ""});
  kinds.push_back({"kv cache", "kv_bytes", ""});
  kinds.push_back({"states", "state_bytes", ""});
  kinds.push_back({"activations", "activation_bytes", ""});
  kinds.push_back({"overhead", "overhead_bytes", ""});
  std::erase_if(kinds, [&](const Kind& kind) {
    const auto all = devices.elements();
    return std::ranges::none_of(all, [&](const JsonView& device) {
      const auto bytes = bytes_of(device, kind);
      return bytes && bytes->count() > 0;
    });
  });
  return kinds;
}

StackedBar bar_of(const DeviceGroup& group, const JsonView& device,
                  const std::vector<Kind>& kinds) {
  StackedBar bar{group.name, {}, ""};
  i64 total = 0;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const auto bytes = bytes_of(device, kinds[k]);
    if (!bytes) continue;
    bar.parts.push_back(
        {k, *bytes, static_cast<double>(bytes->count()), format_bytes(bytes->count())});
    total += bytes->count();
  }
  bar.end = format_bytes(total);
  return bar;
}

BarChart chart_of(const JsonView& devices, const std::vector<DeviceGroup>& groups,
                  const std::vector<Kind>& kinds) {
  BarChart chart;
  chart.title = "memory by rank";
  for (const Kind& kind : kinds) chart.kinds.push_back(kind.name);
  for (const DeviceGroup& group : groups)
    chart.bars.push_back(bar_of(group, devices[group.first], kinds));
  if (!devices[0].has("budget_bytes")) return chart;
  const i64 budget = devices[0]["budget_bytes"].count();
  chart.limit = static_cast<double>(budget);
  chart.limit_text = "budget " + format_bytes(budget);
  return chart;
}

void write_table(Page& page, const JsonView& devices, const std::vector<DeviceGroup>& groups,
                 const std::vector<Kind>& kinds) {
  page.html().line_break().open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  page.html().element("th", "memory");
  for (const DeviceGroup& group : groups) page.html().element("th", group.name, {{"class", "n"}});
  page.html().close().close().open("tbody");
  const auto row = [&](std::string_view name, const auto& value) {
    page.begin_row().text_cell(name);
    for (const DeviceGroup& group : groups) {
      const std::optional<JsonView> bytes = value(devices[group.first]);
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
  row("padding", field("padding_bytes"));
  page.end_table();
}

}  // namespace

void write_memory_bars(Page& page, const JsonView& plan) {
  const JsonView devices = plan["devices"];
  const std::vector<DeviceGroup> groups = equal_devices(devices);
  const std::vector<Kind> kinds = kinds_of(devices);
  write_bars(page, chart_of(devices, groups, kinds));
  constexpr size_t kMostColumns = 12;
  if (groups.size() <= kMostColumns) {
    write_table(page, devices, groups, kinds);
  } else {
    const std::vector<DeviceGroup> first(groups.begin(), groups.begin() + kMostColumns);
    write_table(page, devices, first, kinds);
    page.note("The table shows the first ranks; the JSON document of this page has all.");
  }
}

}  // namespace shardtool::cli
