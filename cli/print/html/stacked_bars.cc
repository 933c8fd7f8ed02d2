#include "cli/print/html/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardtool::cli {
namespace {

constexpr double kBarHeight = 18, kBarsStep = 26, kBarsTop = 22, kBarsGap = 6;
constexpr double kClose = 20;  // from a bar to one that it stands together with
constexpr double kBarsCharacter = 6.5;
constexpr size_t kBarsColours = 9;

double length_of(const StackedBar& bar) {
  double length = 0;
  for (const BarPart& part : bar.parts) length += part.length;
  return length;
}

std::string colour_of(size_t kind) {
  return fmt::format("f{}", kind % kBarsColours);
}

class Bars {
 public:
  Bars(Page& page, const BarChart& chart) : html_(page.html()), chart_(chart) {
    for (const StackedBar& bar : chart_.bars) most_ = std::max({most_, length_of(bar), bar.limit});
  }

  void write() {
    const double width = chart_.names_width + chart_.bars_width + chart_.ends_width;
    const double height = height_of_all();
    open_picture(html_, width, height, chart_.title, "chart");
    for (size_t row = 0; row < chart_.bars.size(); ++row) write_bar(chart_.bars[row], row);
    if (has_one_limit()) write_limit();
    html_.close();
    write_keys();
    html_.close();
  }

 private:
  double y_of(size_t row) const {
    const size_t groups = row / chart_.bars_together;
    const double of_group = kBarsStep + kClose * static_cast<double>(chart_.bars_together - 1);
    return kBarsTop + of_group * static_cast<double>(groups) +
           kClose * static_cast<double>(row % chart_.bars_together);
  }
  double height_of_all() const { return y_of(chart_.bars.size() - 1) + kBarsStep + kBarHeight; }
  /// True if all bars have the same limit, which then is one line through all of them.
  bool has_one_limit() const {
    const double limit = chart_.bars.front().limit;
    return limit > 0 && std::ranges::all_of(
                            chart_.bars, [&](const StackedBar& bar) { return bar.limit == limit; });
  }
  double x_of(double length) const {
    return chart_.names_width + (most_ > 0 ? chart_.bars_width * length / most_ : 0);
  }

  void text(std::string_view text, double x, double y, std::string_view anchor) {
    html_.element("text", text,
                  {{"x", coordinate(x)}, {"y", coordinate(y)}, {"text-anchor", anchor}});
  }

  void write_bar(const StackedBar& bar, size_t row) {
    constexpr double kBaseline = 13;
    const double y = y_of(row);
    text(bar.name, chart_.names_width - kBarsGap, y + kBaseline, "end");
    double begin = 0;
    for (const BarPart& part : bar.parts) {
      if (part.length == 0) continue;
      html_.open("rect", {{"class", colour_of(part.kind)},
                          {"x", coordinate(x_of(begin))},
                          {"y", coordinate(y)},
                          {"width", coordinate(x_of(begin + part.length) - x_of(begin))},
                          {"height", coordinate(kBarHeight)},
                          {"data-at", part.value ? part.value->pointer() : ""},
                          {"data-value", part.value ? part.value->json() : ""}});
      html_.element("title", fmt::format("{}: {}", chart_.kinds[part.kind], part.text)).close();
      begin += part.length;
    }
    write_overflow(bar.limit, begin, y);
    if (bar.limit > 0 && !has_one_limit()) limit_line(bar.limit, y - 2, y + kBarHeight + 2);
    text(bar.end, end_of(bar, x_of(begin)) + kBarsGap, y + kBaseline, "start");
  }

  /// Returns where the text behind a bar begins: behind its limit, if the text would cross that.
  double end_of(const StackedBar& bar, double end) const {
    const double limit = x_of(bar.limit);
    const double room = 2 * kBarsGap + kBarsCharacter * static_cast<double>(bar.end.size());
    return bar.limit > 0 && limit > end && limit - end < room ? limit : end;
  }

  void write_overflow(double limit, double length, double y) {
    if (limit == 0 || length <= limit) return;
    html_.empty("rect", {{"class", "over"},
                         {"x", coordinate(x_of(limit))},
                         {"y", coordinate(y)},
                         {"width", coordinate(x_of(length) - x_of(limit))},
                         {"height", coordinate(kBarHeight)}});
  }

  void limit_line(double limit, double from, double to) {
    html_.empty("line", {{"class", "rule"},
                         {"x1", coordinate(x_of(limit))},
                         {"y1", coordinate(from)},
                         {"x2", coordinate(x_of(limit))},
                         {"y2", coordinate(to)}});
  }

  void write_limit() {
    constexpr double kBaseline = 12;
    const double limit = chart_.bars.front().limit;
    limit_line(limit, kBarsTop - kBaseline / 2, height_of_all() - kBaseline);
    text(chart_.limit_text, x_of(limit), kBaseline, "middle");
  }

  void write_keys() {
    html_.open("figcaption", {{"class", "keys"}});
    for (size_t kind = 0; kind < chart_.kinds.size(); ++kind) {
      html_.open("span").element("i", "", {{"class", "key " + colour_of(kind)}});
      html_.text(chart_.kinds[kind]).close();
    }
    html_.close();
  }

  HtmlWriter& html_;
  const BarChart& chart_;
  double most_ = 0;
};

}  // namespace

void fit_texts(BarChart& chart) {
  const auto width = [](const std::string& text) {
    return 2 * kBarsGap + kBarsCharacter * static_cast<double>(text.size());
  };
  for (const StackedBar& bar : chart.bars) {
    chart.names_width = std::max(chart.names_width, width(bar.name));
    chart.ends_width = std::max(chart.ends_width, width(bar.end));
  }
}

void write_bars(Page& page, const BarChart& chart) {
  Bars(page, chart).write();
}

}  // namespace shardtool::cli
