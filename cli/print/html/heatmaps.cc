#include "cli/print/html/heatmaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr int kLevels = 8;

/// Step 1 to kLevels of a byte count on a logarithmic scale that ends at the largest and has a
/// ratio of at least 16; 0 for no bytes.
class Levels {
 public:
  void add(i64 bytes) {
    if (bytes <= 0) return;
    least_ = least_ == 0 ? bytes : std::min(least_, bytes);
    most_ = std::max(most_, bytes);
  }
  int of(i64 bytes) const {
    if (bytes <= 0) return 0;
    constexpr double kShortest = 16;  // a scale's ends, so that nearly equal counts look alike
    const auto most = static_cast<double>(most_);
    const double span = std::log(std::max(kShortest, most / static_cast<double>(least_)));
    const double below = std::log(most / static_cast<double>(bytes)) / span;
    return kLevels - static_cast<int>(std::lround(below * (kLevels - 1)));
  }
  i64 least() const { return least_; }
  i64 most() const { return most_; }

 private:
  i64 least_ = 0, most_ = 0;
};

std::string opacity(int level) {
  return coordinate(static_cast<double>(level) / kLevels);
}

/// Squares of one level as one path, so that 64 x 64 devices stay small.
class PairMap {
 public:
  PairMap(Page& page, const JsonView& reshard) : html_(page.html()), pairs_(reshard["pairs"]) {
    for (const JsonView& pair : pairs_.elements()) {
      levels_.add(pair["bytes"].count());
      senders_ = std::max(senders_, sender(pair) + 1);
      receivers_ = std::max(receivers_, pair["to"].count() + 1);
    }
    node_size_ = std::max<i64>(1, reshard["node_size"].count());
    constexpr double kMost = 26, kAll = 400;
    cell_ = std::min(kMost, kAll / static_cast<double>(std::max(senders_, receivers_)));
  }

  void write() {
    const double width = kLeft + cell_ * static_cast<double>(receivers_) + kMargin;
    const double height = kTop + cell_ * static_cast<double>(senders_) + kMargin;
    open_picture(html_, width, height, "bytes by sender and receiver");
    write_cells();
    write_borders();
    write_labels();
    html_.close();
    html_.element("figcaption",
                  fmt::format("Rows send, columns receive, {} to {}; the stronger the colour the "
                              "more, on a logarithmic scale. Lines are borders of nodes.",
                              format_bytes(levels_.least()), format_bytes(levels_.most())));
    html_.close();
  }

 private:
  static constexpr double kLeft = 110, kTop = 34, kMargin = 8;

  /// Storage, which has no rank, sends from row 0.
  static i64 sender(const JsonView& pair) { return pair.has("from") ? pair["from"].count() : 0; }

  void write_cells() {
    std::array<std::string, kLevels + 1> paths;
    const std::string side = coordinate(cell_);
    for (const JsonView& pair : pairs_.elements()) {
      const double x = kLeft + cell_ * static_cast<double>(pair["to"].count());
      const double y = kTop + cell_ * static_cast<double>(sender(pair));
      paths.at(static_cast<size_t>(levels_.of(pair["bytes"].count()))) +=
          fmt::format("M{} {}h{}v{}h-{}z", coordinate(x), coordinate(y), side, side, side);
    }
    for (int level = 1; level <= kLevels; ++level) {
      const std::string& path = paths.at(static_cast<size_t>(level));
      if (path.empty()) continue;
      html_.empty("path", {{"class", "f0"}, {"fill-opacity", opacity(level)}, {"d", path}});
    }
  }

  void line(double x1, double y1, double x2, double y2) {
    draw_line(html_, "frame", x1, y1, x2, y2);
  }

  void write_borders() {
    const double right = kLeft + cell_ * static_cast<double>(receivers_);
    const double bottom = kTop + cell_ * static_cast<double>(senders_);
    const auto borders = [&](i64 devices, auto draw) {
      for (i64 device = 0; device < devices; device += node_size_)
        draw(static_cast<double>(device));
      draw(static_cast<double>(devices));
    };
    borders(receivers_,
            [&](double d) { line(kLeft + cell_ * d, kTop, kLeft + cell_ * d, bottom); });
    borders(senders_, [&](double d) { line(kLeft, kTop + cell_ * d, right, kTop + cell_ * d); });
  }

  void write_labels() {
    constexpr double kGap = 6, kBaseline = 4, kLineHeight = 14, kRoom = 22;
    const i64 step = static_cast<i64>(std::ceil(kRoom / cell_));
    draw_text(html_, "to rank", kLeft, kTop - kLineHeight - kGap, "start");
    for (i64 d = 0; d < receivers_; d += step)
      draw_text(html_, fmt::format("{}", d), kLeft + cell_ * (static_cast<double>(d) + 0.5),
                kTop - kGap, "middle");
    const bool from_storage = !pairs_[size_t{0}].has("from");
    for (i64 d = 0; d < senders_; d += step) {
      draw_text(html_, from_storage ? "from storage" : fmt::format("from rank {}", d), kLeft - kGap,
                kTop + cell_ * (static_cast<double>(d) + 0.5) + kBaseline, "end");
    }
  }

  HtmlWriter& html_;
  JsonView pairs_;
  Levels levels_;
  i64 senders_ = 0, receivers_ = 0;
  i64 node_size_ = 1;
  double cell_ = 1;
};

/// Consecutive layers whose weights are equal.
struct LayerRun {
  size_t first = 0;
  size_t last = 0;
};

std::vector<LayerRun> runs_of(const JsonView& layers) {
  std::vector<LayerRun> runs;
  for (size_t l = 0; l < layers.size(); ++l) {
    const bool is_same = !runs.empty() && layers[runs.back().first]["weights_by_class"].json() ==
                                              layers[l]["weights_by_class"].json();
    if (is_same) {
      runs.back().last = l;
    } else {
      runs.push_back({l, l});
    }
  }
  return runs;
}

std::string run_name(const JsonView& layers, const LayerRun& run) {
  const std::string first = layers[run.first]["layer"].text();
  return run.first == run.last ? first : first + " to " + layers[run.last]["layer"].text();
}

std::vector<std::string> classes_of(const JsonView& layers) {
  std::vector<std::string> classes = layers[size_t{0}]["weights_by_class"].keys();
  std::erase_if(classes, [&](const std::string& name) {
    const auto all = layers.elements();
    return std::ranges::all_of(
        all, [&](const JsonView& layer) { return layer["weights_by_class"][name].count() == 0; });
  });
  return classes;
}

}  // namespace

void write_pairs(Page& page, const JsonView& reshard) {
  const JsonView pairs = reshard["pairs"];
  if (pairs.empty()) return;
  PairMap(page, reshard).write();
  std::vector<JsonView> largest = pairs.elements();
  std::ranges::stable_sort(largest, std::greater(),
                           [](const JsonView& pair) { return pair["bytes"].count(); });
  constexpr size_t kMost = 16;
  page.html().open("details").element("summary",
                                      "Pairs as a table, those with the most bytes first");
  page.begin_table({"from", "to", "#bytes"});
  for (size_t p = 0; p < std::min(kMost, largest.size()); ++p) {
    page.begin_row();
    largest[p].has("from") ? page.count_cell(largest[p]["from"]) : page.text_cell("storage");
    page.count_cell(largest[p]["to"]).bytes_cell(largest[p]["bytes"]).end_row();
  }
  page.end_table();
  page.note_rest(largest.size(), kMost, "pairs");
  page.html().close();
}

void write_layers(Page& page, const JsonView& plan) {
  const JsonView layers = plan["layers"];
  const std::vector<std::string> classes = classes_of(layers);
  Levels levels;
  for (const JsonView& layer : layers.elements()) {
    for (const std::string& name : classes) levels.add(layer["weights_by_class"][name].count());
  }
  HtmlWriter& html = page.html();
  html.line_break().open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  html.element("th", "layers");
  for (const std::string& name : classes) html.element("th", name, {{"class", "n"}});
  html.close().close().open("tbody");
  for (const LayerRun& run : runs_of(layers)) {
    page.begin_row().text_cell(run_name(layers, run));
    for (const std::string& name : classes) {
      const JsonView bytes = layers[run.first]["weights_by_class"][name];
      const int level = levels.of(bytes.count());
      html.open("td", {{"class", level > 0 ? fmt::format("n h{}", level) : "n"}});
      if (level > 0) page.bytes(bytes);
      html.close();
    }
    page.end_row();
  }
  page.end_table();
  page.note(
      "Bytes of one layer on the fullest device; the stronger the colour the more, on a "
      "logarithmic scale.");
}

}  // namespace shardtool::cli
