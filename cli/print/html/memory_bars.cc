#include "cli/print/html/memory_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/html/device_groups.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr double kBarsLeft = 120, kBarsWidth = 560, kBarHeight = 18, kBarsStep = 26, kBarsTop = 22;
constexpr size_t kBarsColours = 8;

/// One kind of memory: a name, and where a device's document has it.
struct Kind {
  std::string name;
  std::string field;
  std::string weight_class;  ///< of "weights_by_class" instead of `field`
  size_t number = 0;         ///< of its colour
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
  for (size_t k = 0; k < kinds.size(); ++k) kinds[k].number = k % kBarsColours;
  return kinds;
}

class Bars {
 public:
  Bars(Page& page, const JsonView& devices, const std::vector<DeviceGroup>& groups,
       const std::vector<Kind>& kinds)
      : html_(page.html()), devices_(devices), groups_(groups), kinds_(kinds) {
    for (const DeviceGroup& group : groups_)
      most_ = std::max(most_, devices_[group.first]["total_bytes"].count());
    if (devices_[0].has("budget_bytes")) {
      budget_ = devices_[0]["budget_bytes"].count();
      most_ = std::max(most_, budget_);
    }
  }

  void write() {
    const double height = kBarsTop + kBarsStep * static_cast<double>(groups_.size()) + kBarHeight;
    html_.line_break().open("figure").open(
        "svg", {{"viewBox", fmt::format("0 0 {} {}", coordinate(kBarsLeft + kBarsWidth + kBarsLeft),
                                        coordinate(height))},
                {"width", coordinate(kBarsLeft + kBarsWidth + kBarsLeft)},
                {"height", coordinate(height)},
                {"role", "img"},
                {"aria-label", "memory by rank"}});
    for (size_t g = 0; g < groups_.size(); ++g) write_bar(groups_[g], g);
    if (budget_ > 0) write_budget(height);
    html_.close();
    write_keys();
    html_.close();
  }

 private:
  double x_of(i64 bytes) const {
    return kBarsLeft +
           kBarsWidth * static_cast<double>(bytes) / static_cast<double>(std::max<i64>(most_, 1));
  }

  void text(std::string_view text, double x, double y, std::string_view anchor) {
    html_.element("text", text,
                  {{"x", coordinate(x)}, {"y", coordinate(y)}, {"text-anchor", anchor}});
  }

  void write_bar(const DeviceGroup& group, size_t row) {
    const JsonView device = devices_[group.first];
    const double y = kBarsTop + kBarsStep * static_cast<double>(row);
    constexpr double kBaseline = 13, kGap = 6;
    text(group.name, kBarsLeft - kGap, y + kBaseline, "end");
    i64 begin = 0;
    for (const Kind& kind : kinds_) {
      const auto bytes = bytes_of(device, kind);
      if (!bytes || bytes->count() == 0) continue;
      const double width = x_of(begin + bytes->count()) - x_of(begin);
      html_.open("rect", {{"class", fmt::format("f{}", kind.number)},
                          {"x", coordinate(x_of(begin))},
                          {"y", coordinate(y)},
                          {"width", coordinate(width)},
                          {"height", coordinate(kBarHeight)},
                          {"data-at", bytes->pointer()},
                          {"data-value", bytes->json()}});
      html_.element("title", fmt::format("{}: {}", kind.name, format_bytes(bytes->count())))
          .close();
      begin += bytes->count();
    }
    write_overflow(begin, y);
    text(format_bytes(begin), x_of(begin) + kGap, y + kBaseline, "start");
  }

  void write_overflow(i64 total, double y) {
    if (budget_ == 0 || total <= budget_) return;
    html_.empty("rect", {{"class", "over"},
                         {"x", coordinate(x_of(budget_))},
                         {"y", coordinate(y)},
                         {"width", coordinate(x_of(total) - x_of(budget_))},
                         {"height", coordinate(kBarHeight)}});
  }

  void write_budget(double height) {
    constexpr double kBaseline = 12;
    html_.empty("line", {{"class", "rule"},
                         {"x1", coordinate(x_of(budget_))},
                         {"y1", coordinate(kBarsTop - kBaseline / 2)},
                         {"x2", coordinate(x_of(budget_))},
                         {"y2", coordinate(height - kBaseline)}});
    text("budget " + format_bytes(budget_), x_of(budget_), kBaseline, "middle");
  }

  void write_keys() {
    html_.open("figcaption", {{"class", "keys"}});
    for (const Kind& kind : kinds_) {
      html_.open("span").element("i", "", {{"class", fmt::format("key f{}", kind.number)}});
      html_.text(kind.name).close();
    }
    html_.close();
  }

  HtmlWriter& html_;
  const JsonView& devices_;
  const std::vector<DeviceGroup>& groups_;
  const std::vector<Kind>& kinds_;
  i64 most_ = 0;
  i64 budget_ = 0;
};

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
  Bars(page, devices, groups, kinds).write();
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
