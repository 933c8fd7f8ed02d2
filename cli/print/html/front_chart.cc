#include "cli/print/html/front_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cli/print/html/line_chart.h"
#include "cli/print/search/words.h"

namespace shardtool::cli {
namespace {

constexpr double kPlotLeft = 64, kPlotTop = 30, kPlotBelow = 40, kLabelGap = 6;

struct Point {
  double x = 0;
  double y = 0;
};

/// A rectangle that a label fills, by its estimated width.
struct LabelBox {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool overlaps(const LabelBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

class FrontChart {
 public:
  FrontChart(Page& page, const JsonView& search, Screen screen)
      : html_(page.html()),
        search_(search),
        screen_(screen),
        margin_(screen == Screen::kWide ? 40 : 20),
        right_(screen == Screen::kWide ? kPlotLeft + 640 : kNarrowWidth - margin_),
        bottom_(kPlotTop + (screen == Screen::kWide ? 320 : 240)),
        rows_(search["rows"]),
        band_(has_later_tokens(search) ? search["tpot_band"].number() : 0),
        slower_(1 / (1 + band_)),
        faster_(1 / (1 - band_)) {
    for (const JsonView& row : rows_.elements()) {
      most_.x = std::max(most_.x, row["tokens_per_s_per_user"].number());
      most_.y = std::max(most_.y, row["tokens_per_s_per_device"].number());
    }
    for (const JsonView& one : search["front"].elements()) {
      const JsonView row = row_of(one);
      most_.x = std::max(most_.x, faster_ * row["tokens_per_s_per_user"].number());
      most_.y = std::max(most_.y, faster_ * row["tokens_per_s_per_device"].number());
    }
    constexpr double kHeadroom = 1.05;
    most_ = {most_.x * kHeadroom, most_.y * kHeadroom};
  }

  void write() {
    open_drawing(html_, screen_, right_ + margin_, bottom_ + kPlotBelow,
                 "tokens per second of a device and of a client");
    write_axes();
    write_limit();
    write_band();
    write_others();
    write_front();
    write_optimum();
    html_.close();
  }

 private:
  Point at(const JsonView& row) const {
    return {x_of(row["tokens_per_s_per_user"].number()),
            y_of(row["tokens_per_s_per_device"].number())};
  }
  double x_of(double tokens) const { return kPlotLeft + (right_ - kPlotLeft) * tokens / most_.x; }
  double y_of(double tokens) const { return bottom_ - (bottom_ - kPlotTop) * tokens / most_.y; }

  void text(std::string_view text, Point p, std::string_view anchor) {
    draw_text(html_, text, p.x, p.y, anchor);
  }

  void line(std::string_view kind, Point from, Point to) {
    draw_line(html_, kind, from.x, from.y, to.x, to.y);
  }

  void write_axes() {
    constexpr double kBaseline = 4, kLineHeight = 16;
    const double right_step = tick_step(most_.x, screen_ == Screen::kWide ? 5 : 4),
                 up_step = tick_step(most_.y);
    for (double tick = 0; tick <= most_.x; tick += right_step) {
      line("grid", {x_of(tick), kPlotTop}, {x_of(tick), bottom_});
      text(tokens_text(tick), {x_of(tick), bottom_ + kLineHeight}, "middle");
    }
    for (double tick = 0; tick <= most_.y; tick += up_step) {
      line("grid", {kPlotLeft, y_of(tick)}, {right_, y_of(tick)});
      text(tokens_text(tick), {kPlotLeft - kLabelGap, y_of(tick) + kBaseline}, "end");
    }
    text("tokens/s per device", {kLabelGap, kPlotTop - kLineHeight}, "start");
    text("tokens/s of a client", {right_, bottom_ + 2 * kLineHeight}, "end");
  }

  /// Draws the slowest client that the limit on the time per token allows.
  void write_limit() {
    if (!search_["limits"].has("tpot_ms")) return;
    constexpr double kMsPerSecond = 1e3;
    const JsonView limit = search_["limits"]["tpot_ms"];
    const double x = x_of(kMsPerSecond / limit.number());
    if (x > right_) return;
    line("rule", {x, kPlotTop}, {x, bottom_});
    const std::string words = fmt::format("TPOT at most {:g} ms", limit.number());
    const bool is_at_right = x > (kPlotLeft + right_) / 2;
    const Point place{x + (is_at_right ? -kLabelGap : kLabelGap), kPlotTop - kLabelGap};
    text(words, place, is_at_right ? "end" : "start");
  }

  /// Draws a row as a circle, or else as a cross.
  void mark(bool is_circle, std::string_view kind, const JsonView& row) {
    constexpr double kRadius = 4.5, kSmallRadius = 3;
    const double radius = kind == "f7 small" ? kSmallRadius : kRadius;
    const Point p = at(row);
    const std::string x = coordinate(p.x), y = coordinate(p.y), r = coordinate(radius);
    const std::string cross =
        fmt::format("M{0} {1}l{2} {2}m0 -{2}l-{2} {2}", coordinate(p.x - radius),
                    coordinate(p.y - radius), coordinate(2 * radius));
    if (screen_ == Screen::kNarrow) {
      is_circle ? html_.empty("circle", {{"class", kind}, {"cx", x}, {"cy", y}, {"r", r}})
                : html_.empty("path", {{"class", kind}, {"d", cross}});
      return;
    }
    const JsonView value = row["tokens_per_s_per_device"];
    const std::string at = value.pointer(), json = value.json();
    is_circle ? html_.open("circle", {{"class", kind},
                                      {"cx", x},
                                      {"cy", y},
                                      {"r", r},
                                      {"data-at", at},
                                      {"data-value", json}})
              : html_.open("path",
                           {{"class", kind}, {"d", cross}, {"data-at", at}, {"data-value", json}});
    html_.element("title", row_words(row)).close();
  }

  std::string row_words(const JsonView& row) const {
    return fmt::format("{} with {} {}: {} tokens/s per device, {} of a client", row["name"].text(),
                       row["concurrency"].count(),
                       search_.has("request_rate") ? "at once" : "clients",
                       tokens_text(row["tokens_per_s_per_device"].number()),
                       tokens_text(row["tokens_per_s_per_user"].number()));
  }

  JsonView row_of(const JsonView& named) const {
    return rows_[static_cast<size_t>(named["row"].count())];
  }

  void write_others() {
    std::set<i64> on_front;
    for (const JsonView& one : search_["front"].elements()) on_front.insert(one["row"].count());
    std::set<i64> barred;
    for (const JsonView& one : search_["binds"].elements()) {
      if (!one.has("row")) continue;
      barred.insert(one["row"].count());
      mark(false, "barred", row_of(one));
    }
    for (size_t r = 0; r < rows_.size(); ++r) {
      const auto row = static_cast<i64>(r);
      if (on_front.contains(row) || barred.contains(row)) continue;
      mark(true, "f7 small", rows_[r]);
    }
  }

  /// Shades where the front lies if times per token differ from the modelled ones by the band.
  void write_band() {
    const std::vector<JsonView> front = search_["front"].elements();
    if (front.empty() || band_ == 0) return;
    std::string path;
    const auto add = [&](const JsonView& one, double times) {
      const JsonView row = row_of(one);
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L",
                          coordinate(x_of(times * row["tokens_per_s_per_user"].number())),
                          coordinate(y_of(times * row["tokens_per_s_per_device"].number())));
    };
    for (const JsonView& one : front) add(one, slower_);
    for (size_t i = front.size(); i-- > 0;) add(front[i], faster_);
    html_.empty("path", {{"class", "band"}, {"d", path + "Z"}});
  }

  void write_front() {
    const std::vector<JsonView> front = search_["front"].elements();
    std::string path;
    for (const JsonView& one : front) {
      const Point p = at(row_of(one));
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(p.x), coordinate(p.y));
    }
    if (front.size() > 1) html_.empty("path", {{"class", "way"}, {"d", path}});
    for (size_t i = 0; i < front.size(); ++i) {
      const JsonView row = row_of(front[i]);
      mark(true, "f0", row);
      label(fmt::format("{}", i + 1), at(row));
    }
  }

  void write_optimum() {
    if (!search_.has("optimum")) return;
    const JsonView row = rows_[static_cast<size_t>(search_["optimum"].count())];
    constexpr double kRing = 8;
    const Point p = at(row);
    html_.empty("circle", {{"class", "ring"},
                           {"cx", coordinate(p.x)},
                           {"cy", coordinate(p.y)},
                           {"r", coordinate(kRing)}});
  }

  /// Writes a label beside a point where it overlaps none; leaves it out where there is no room.
  void label(const std::string& words, Point p) {
    constexpr double kCharacter = 7, kHeight = 12, kDistance = 10;
    const double width = kCharacter * static_cast<double>(words.size());
    const Point places[] = {{p.x + kDistance, p.y - kDistance},
                            {p.x - kDistance - width, p.y + kDistance + kHeight / 2},
                            {p.x + kDistance, p.y + kDistance + kHeight / 2},
                            {p.x - kDistance - width, p.y - kDistance}};
    for (const Point& place : places) {
      const LabelBox box{place.x, place.y - kHeight, place.x + width, place.y + 2};
      const bool is_inside = box.left > kPlotLeft && box.right < right_ + margin_ &&
                             box.top > kPlotTop && box.bottom < bottom_;
      const auto hits = [&](const LabelBox& other) { return box.overlaps(other); };
      if (!is_inside || std::ranges::any_of(labels_, hits)) continue;
      labels_.push_back(box);
      text(words, place, "start");
      return;
    }
  }

  HtmlWriter& html_;
  const JsonView& search_;
  Screen screen_;
  double margin_;  ///< beside the plot
  double right_;   ///< of the plot
  double bottom_;  ///< of the plot
  JsonView rows_;
  double band_ = 0;    ///< of times per token, as a fraction; 0 if answers have none
  double slower_ = 1;  ///< rate of a time per token at the slow end of its band, to the modelled
  double faster_ = 1;
  Point most_;  ///< tokens per second at the ends of the axes
  std::vector<LabelBox> labels_;
};

void write_caption(Page& page, const JsonView& search) {
  HtmlWriter& html = page.html();
  html.open("figcaption", {{"class", "keys"}});
  const auto key = [&](std::string_view colour, std::string_view words) {
    html.open("span").element("i", "", {{"class", fmt::format("key {}", colour)}});
    html.text(words).close();
  };
  key("f0", "front: no row beats it in both");
  key("f7", "another layout, at its best");
  html.text(" ").element("span", "ring: the best");
  if (has_later_tokens(search))
    html.text(" ").element("span", "shade: the front within the band of TPOT");
  const auto binds = search["binds"].elements();
  if (std::ranges::any_of(binds, [](const JsonView& bind) { return bind.has("row"); }))
    html.text(" ").element("span", "cross: excluded by a limit");
  html.close();
}

}  // namespace

bool has_later_tokens(const JsonView& search) {
  return search["output_len"].count() > 1;
}

void write_front_chart(Page& page, const JsonView& search) {
  page.html().line_break().open("figure");
  for (const Screen screen : {Screen::kWide, Screen::kNarrow})
    FrontChart(page, search, screen).write();
  write_caption(page, search);
  page.html().close();
}

}  // namespace shardtool::cli
