#include "cli/print/html/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr double kLinesLeft = 76, kLinesTop = 30, kLinesHeight = 220, kLinesBelow = 44;
constexpr double kLinesBottom = kLinesTop + kLinesHeight;
constexpr double kLinesGap = 6, kLinesLineHeight = 16, kLinesBaseline = 4;

class LineDrawing {
 public:
  LineDrawing(Page& page, const LineChart& chart, Screen screen)
      : html_(page.html()),
        chart_(chart),
        screen_(screen),
        right_(screen == Screen::kWide ? kLinesLeft + 600 : kNarrowWidth - kNarrowMargin),
        most_x_(chart.limit_x),
        most_y_(chart.limit_y) {
    for (const ChartPoint& point : chart_.points) {
      most_x_ = std::max(most_x_, point.x);
      most_y_ = std::max(most_y_, point.y);
    }
    constexpr double kRoomAtRight = 1.05, kRoomAbove = 1.15;  // for labels
    most_x_ = std::max(most_x_, 1.0) * kRoomAtRight;
    most_y_ = std::max(most_y_, 1.0) * kRoomAbove;
  }

  void write() {
    const double width = screen_ == Screen::kWide ? right_ + kLinesBelow : kNarrowWidth;
    open_drawing(html_, screen_, width, kLinesBottom + kLinesBelow, chart_.title);
    write_axes();
    write_limits();
    write_path();
    write_points();
    html_.close();
  }

 private:
  static constexpr double kNarrowMargin = 28;

  double x_of(double x) const { return kLinesLeft + (right_ - kLinesLeft) * x / most_x_; }
  double y_of(double y) const { return kLinesBottom - kLinesHeight * y / most_y_; }

  void text(std::string_view text, double x, double y, std::string_view anchor) {
    draw_text(html_, text, x, y, anchor);
  }

  void line(std::string_view kind, double x1, double y1, double x2, double y2) {
    draw_line(html_, kind, x1, y1, x2, y2);
  }

  void write_axes() {
    const double ticks = screen_ == Screen::kWide ? 5 : 3;
    const double right = tick_step(most_x_ / chart_.x.unit, ticks) * chart_.x.unit;
    const double up = tick_step(most_y_ / chart_.y.unit) * chart_.y.unit;
    for (double tick = 0; tick <= most_x_; tick += right) {
      line("grid", x_of(tick), kLinesTop, x_of(tick), kLinesBottom);
      text(chart_.x.text(tick), x_of(tick), kLinesBottom + kLinesLineHeight + 2, "middle");
    }
    for (double tick = 0; tick <= most_y_; tick += up) {
      line("grid", kLinesLeft, y_of(tick), right_, y_of(tick));
      text(chart_.y.text(tick), kLinesLeft - kLinesGap, y_of(tick) + kLinesBaseline, "end");
    }
    text(chart_.y.title, kLinesGap, kLinesTop - kLinesLineHeight, "start");
    text(chart_.x.title, right_, kLinesBottom + 2 * kLinesLineHeight, "end");
  }

  void write_limits() {
    if (chart_.limit_x > 0) {
      const double x = x_of(chart_.limit_x);
      line("rule", x, kLinesTop, x, kLinesBottom);
      text(chart_.limit_text, x, kLinesTop - kLinesGap,
           x < (kLinesLeft + right_) / 2 ? "start" : "end");
    }
    if (chart_.limit_y > 0) {
      const double y = y_of(chart_.limit_y);
      line("rule", kLinesLeft, y, right_, y);
      text(chart_.limit_text, right_, y - kLinesGap, "end");
    }
  }

  void write_path() {
    std::string path;
    for (const ChartPoint& point : chart_.points)
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(x_of(point.x)),
                          coordinate(y_of(point.y)));
    if (chart_.points.size() > 1) html_.empty("path", {{"class", "way"}, {"d", path}});
  }

  void mark(const ChartPoint& point, double x, double y) {
    constexpr double kRadius = 4.5;
    const std::string across = coordinate(x), up = coordinate(y), radius = coordinate(kRadius);
    if (screen_ == Screen::kNarrow) {
      html_.empty("circle", {{"class", "f0"}, {"cx", across}, {"cy", up}, {"r", radius}});
      return;
    }
    html_.open("circle", {{"class", "f0"},
                          {"cx", across},
                          {"cy", up},
                          {"r", radius},
                          {"data-at", point.value.pointer()},
                          {"data-value", point.value.json()}});
    html_.element("title", point.title).close();
  }

  void write_points() {
    constexpr double kRing = 8, kDistance = 10;
    for (size_t i = 0; chart_.has_numbers && i < chart_.points.size(); ++i) {
      const ChartPoint& point = chart_.points[i];
      const double x = x_of(point.x), y = y_of(point.y);
      mark(point, x, y);
      text(fmt::format("{}", i + 1), x - kDistance, y - kDistance, "end");
    }
    if (!chart_.rings_last || chart_.points.empty()) return;
    const ChartPoint& last = chart_.points.back();
    html_.empty("circle", {{"class", "ring"},
                           {"cx", coordinate(x_of(last.x))},
                           {"cy", coordinate(y_of(last.y))},
                           {"r", coordinate(kRing)}});
  }

  HtmlWriter& html_;
  const LineChart& chart_;
  Screen screen_;
  double right_;  ///< end of the axis to the right
  double most_x_;
  double most_y_;
};

}  // namespace

void write_line_chart(Page& page, const LineChart& chart) {
  page.html().line_break().open("figure");
  for (const Screen screen : {Screen::kWide, Screen::kNarrow})
    LineDrawing(page, chart, screen).write();
  page.html().close();
}

ChartAxis bytes_axis(const std::string& title, double most) {
  constexpr double kKib = 1024;
  double unit = 1;
  while (unit * kKib <= most) unit *= kKib;
  return {title, unit, [](double bytes) { return format_bytes(std::llround(bytes)); }};
}

double tick_step(double most, double ticks) {
  const double power = std::pow(10, std::floor(std::log10(most / ticks)));
  for (const double factor : {1., 2., 5.}) {
    if (power * factor * ticks >= most) return power * factor;
  }
  return power * 10;
}

}  // namespace shardtool::cli
