#include "cli/print/html/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

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

/// Returns the text in lines of at most `most` characters, if its words are not longer.
std::vector<std::string> in_lines(const std::string& text, size_t most) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > most) {
      lines.push_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
  }
  return lines;
}

/// One drawing of the bars. On a narrow screen their texts are above them.
class Bars {
 public:
  Bars(Page& page, const BarChart& chart, Screen screen)
      : html_(page.html()), chart_(chart), screen_(screen) {
    for (const StackedBar& bar : chart.bars) most_ = std::max({most_, length_of(bar), bar.limit});
    double y = kBarsTop;
    for (size_t row = 0; row < chart.bars.size(); ++row) {
      lines_.push_back(is_narrow() ? lines_above(chart.bars[row]) : std::vector<std::string>());
      y += kBarsLine * static_cast<double>(lines_.back().size());
      tops_.push_back(y);
      const bool is_last = row % chart.bars_together + 1 == chart.bars_together;
      y += is_last ? kBarsStep : kClose;
    }
  }

  void write() {
    const double all = chart_.names_width + chart_.bars_width + chart_.ends_width;
    open_drawing(html_, screen_, is_narrow() ? kNarrowWidth : all, height_of_all(), chart_.title);
    for (size_t row = 0; row < chart_.bars.size(); ++row) write_bar(chart_.bars[row], row);
    if (has_one_limit()) write_limit();
    html_.close();
  }

 private:
  static constexpr double kBarsLine = 14;

  bool is_narrow() const { return screen_ == Screen::kNarrow; }
  double left() const { return is_narrow() ? 0 : chart_.names_width; }
  double width() const { return is_narrow() ? kNarrowWidth - 2 : chart_.bars_width; }
  double height_of_all() const { return tops_.back() + kBarsStep + kBarHeight; }
  /// True if all bars have the same limit, which then is one line through all of them.
  bool has_one_limit() const {
    const double limit = chart_.bars.front().limit;
    return limit > 0 && std::ranges::all_of(
                            chart_.bars, [&](const StackedBar& bar) { return bar.limit == limit; });
  }
  double x_of(double length) const { return left() + (most_ > 0 ? width() * length / most_ : 0); }

  static std::vector<std::string> lines_above(const StackedBar& bar) {
    constexpr auto kMost = static_cast<size_t>(kNarrowWidth / kBarsCharacter);
    return in_lines(bar.end.empty() ? bar.name : bar.name + ": " + bar.end, kMost);
  }

  void text(std::string_view text, double x, double y, std::string_view anchor) {
    draw_text(html_, text, x, y, anchor);
  }

  void write_bar(const StackedBar& bar, size_t row) {
    constexpr double kBaseline = 13, kAbove = 4;
    const double y = tops_[row];
    const std::vector<std::string>& lines = lines_[row];
    for (size_t i = 0; i < lines.size(); ++i)
      text(lines[i], 0, y - kAbove - kBarsLine * static_cast<double>(lines.size() - 1 - i),
           "start");
    if (!is_narrow()) text(bar.name, left() - kBarsGap, y + kBaseline, "end");
    double begin = 0;
    for (const BarPart& part : bar.parts) {
      if (part.length == 0) continue;
      write_part(part, begin, y);
      begin += part.length;
    }
    write_overflow(bar.limit, begin, y);
    if (bar.limit > 0 && (is_narrow() || !has_one_limit()))
      limit_line(bar.limit, y - 2, y + kBarHeight + 2);
    if (!is_narrow()) text(bar.end, end_of(bar, x_of(begin)) + kBarsGap, y + kBaseline, "start");
  }

  void write_part(const BarPart& part, double begin, double y) {
    const std::string colour = colour_of(part.kind), x = coordinate(x_of(begin)),
                      top = coordinate(y), height = coordinate(kBarHeight),
                      width = coordinate(x_of(begin + part.length) - x_of(begin));
    if (is_narrow()) {
      html_.empty("rect",
                  {{"class", colour}, {"x", x}, {"y", top}, {"width", width}, {"height", height}});
      return;
    }
    html_.open("rect", {{"class", colour},
                        {"x", x},
                        {"y", top},
                        {"width", width},
                        {"height", height},
                        {"data-at", part.value ? part.value->pointer() : ""},
                        {"data-value", part.value ? part.value->json() : ""}});
    html_.element("title", fmt::format("{}: {}", chart_.kinds[part.kind], part.text)).close();
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
    draw_line(html_, "rule", x_of(limit), from, x_of(limit), to);
  }

  void write_limit() {
    constexpr double kBaseline = 12;
    const double limit = x_of(chart_.bars.front().limit);
    if (!is_narrow()) {
      limit_line(chart_.bars.front().limit, kBarsTop - kBaseline / 2, height_of_all() - kBaseline);
      text(chart_.limit_text, limit, kBaseline, "middle");
      return;
    }
    const bool is_at_right = limit > kNarrowWidth / 2;
    text(chart_.limit_text, limit, kBaseline, is_at_right ? "end" : "start");
  }

  HtmlWriter& html_;
  const BarChart& chart_;
  Screen screen_;
  std::vector<std::vector<std::string>> lines_;  ///< texts above each bar
  std::vector<double> tops_;                     ///< of the bars
  double most_ = 0;
};

void write_keys(HtmlWriter& html, const BarChart& chart) {
  html.open("figcaption", {{"class", "keys"}});
  for (size_t kind = 0; kind < chart.kinds.size(); ++kind) {
    html.open("span").element("i", "", {{"class", "key " + colour_of(kind)}});
    html.text(chart.kinds[kind]).close();
  }
  html.close();
}

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
  page.html().line_break().open("figure");
  for (const Screen screen : {Screen::kWide, Screen::kNarrow}) Bars(page, chart, screen).write();
  write_keys(page.html(), chart);
  page.html().close();
}

}  // namespace shardtool::cli
