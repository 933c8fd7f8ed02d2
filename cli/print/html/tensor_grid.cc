#include "cli/print/html/tensor_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/html/device_groups.h"
#include "cli/print/html/held_parts.h"
#include "cli/print/html/owners_strip.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr double kGridWidth = 400, kGridHeight = 150;  // of the tensor, at least, in pixels
constexpr double kGridStrip = 40;                      // height of a tensor of one axis
constexpr double kGridLeft = 84, kGridTop = 18;        // room for the labels of the axes
constexpr double kGridRoom = 36;                       // for padding, beside the tensor
constexpr double kCharacter = 7, kLineHeight = 12;     // of a label
constexpr size_t kTints = 3;                           // that sections take in turn
constexpr size_t kGridColours = 8;

/// Axes that the drawing shows as rows and columns: the cut ones first.
struct Plane {
  size_t rows = 0, columns = 0;
  bool has_rows = true, has_columns = true;  ///< false for a tensor of fewer axes
  std::vector<size_t> not_shown;             ///< cut axes that the drawing leaves out
};

Plane plane_of(const std::vector<HeldPart>& parts, size_t axes) {
  std::vector<size_t> shown;
  for (size_t a = 0; a < axes; ++a) {
    const bool is_cut = std::ranges::any_of(
        parts, [&](const HeldPart& part) { return part.axes[a] != parts.front().axes[a]; });
    if (is_cut) shown.push_back(a);
  }
  Plane plane;
  while (shown.size() > 2) {
    plane.not_shown.insert(plane.not_shown.begin(), shown.back());
    shown.pop_back();
  }
  for (size_t a = 0; a < axes && shown.size() < 2; ++a) {
    if (std::ranges::find(shown, a) == shown.end()) shown.push_back(a);
  }
  std::ranges::sort(shown);
  plane.has_columns = !shown.empty();
  plane.has_rows = shown.size() > 1;
  if (plane.has_columns) plane.columns = shown.back();
  if (plane.has_rows) plane.rows = shown.front();
  return plane;
}

/// Height of the tensor with room for a label in each of up to `kMost` rows of parts.
double height_of(const std::vector<HeldPart>& parts, const Plane& plane) {
  constexpr double kRow = 13;
  constexpr size_t kMost = 32;
  if (!plane.has_rows) return kGridStrip;
  std::vector<AxisPart> rows;
  for (const HeldPart& part : parts) {
    if (std::ranges::find(rows, part.axes[plane.rows]) == rows.end())
      rows.push_back(part.axes[plane.rows]);
  }
  if (rows.size() > kMost) return kGridHeight;
  return std::max(kGridHeight, kRow * static_cast<double>(rows.size()));
}

/// Scale of one axis of the drawing.
class Scale {
 public:
  Scale(i64 extent, double begin, double length)
      : extent_(std::max<i64>(extent, 1)), begin_(begin), length_(length) {}
  double at(i64 index) const {
    return begin_ + length_ * static_cast<double>(index) / static_cast<double>(extent_);
  }
  double end() const { return begin_ + length_; }

 private:
  i64 extent_;
  double begin_, length_;
};

class Drawing {
 public:
  Drawing(Page& page, const JsonView& rule, const std::vector<HeldPart>& parts)
      : html_(page.html()),
        rule_(rule),
        parts_(parts),
        shape_(rule["example"]["shape"]),
        sections_(read_sections(rule["example"])),
        plane_(plane_of(parts, shape_.size())),
        rows_(plane_.has_rows ? shape_[plane_.rows].count() : 1, kGridTop,
              height_of(parts, plane_)),
        columns_(plane_.has_columns ? shape_[plane_.columns].count() : 1, kGridLeft, kGridWidth) {}

  void write() {
    const bool pads_rows = plane_.has_rows && padded(plane_.rows) > 0;
    const bool pads_columns = plane_.has_columns && padded(plane_.columns) > 0;
    constexpr double kBorder = 2;
    const double names_width = width_of_names();
    const double names_height = has_names(column_sections()) ? kLineHeight + kBorder : 0;
    const double width = columns_.end() + names_width + (pads_columns ? kGridRoom : kBorder);
    const double height = rows_.end() + names_height + (pads_rows ? kGridRoom : kBorder);
    open_picture(html_, width, height, "shards of the tensor by rank");
    for (size_t p = 0; p < parts_.size(); ++p) write_part(parts_[p], p);
    write_sections();
    rectangle("frame", {columns_.at(0), rows_.at(0)}, {columns_.end(), rows_.end()});
    write_axis_labels();
    if (pads_rows)
      write_padding({kGridLeft, rows_.end() + names_height},
                    {columns_.end(), rows_.end() + names_height}, plane_.rows);
    if (pads_columns)
      write_padding({columns_.end() + names_width, kGridTop},
                    {columns_.end() + names_width, rows_.end()}, plane_.columns);
    html_.close();
    write_caption(pads_rows || pads_columns);
    html_.close();
  }

 private:
  struct Point {
    double x, y;
  };

  void rectangle(std::string_view look, Point from, Point to) {
    html_.empty("rect", {{"class", look},
                         {"x", coordinate(from.x)},
                         {"y", coordinate(from.y)},
                         {"width", coordinate(to.x - from.x)},
                         {"height", coordinate(to.y - from.y)}});
  }

  void label(std::string_view text, Point at, std::string_view anchor) {
    draw_text(html_, text, at.x, at.y, anchor);
  }

  /// Writes a label that is read from below.
  void upright_label(std::string_view text, Point at) {
    html_.element("text", text,
                  {{"transform", fmt::format("translate({} {}) rotate(-90)", coordinate(at.x),
                                             coordinate(at.y))},
                   {"text-anchor", "middle"}});
  }

  void extent_label(const std::string& name, const JsonView& extent, Point at,
                    std::string_view anchor) {
    html_.element("text", name + format_count(extent.count()),
                  {{"x", coordinate(at.x)},
                   {"y", coordinate(at.y)},
                   {"text-anchor", anchor},
                   {"data-at", extent.pointer()},
                   {"data-value", extent.json()}});
  }

  using Sections = std::vector<DrawnSection>;

  const Sections& row_sections() const { return plane_.has_rows ? sections_[plane_.rows] : none_; }
  const Sections& column_sections() const {
    return plane_.has_columns ? sections_[plane_.columns] : none_;
  }

  static bool has_names(const Sections& sections) {
    return std::ranges::any_of(sections, [](const auto& section) { return !section.name.empty(); });
  }

  /// Room for the names of the rows' sections, right of the tensor.
  double width_of_names() const {
    size_t longest = 0;
    for (const DrawnSection& section : row_sections())
      longest = std::max(longest, section.name.size());
    return longest == 0 ? 0 : kCharacter * static_cast<double>(longest + 1);
  }

  /// Indices within one section, and its number.
  struct Run {
    index::Interval indices;
    size_t section = 0;
  };

  static std::vector<Run> runs_of(const AxisPart& part, const Sections& sections) {
    std::vector<Run> runs;
    for (const index::Interval& held : part.held) {
      if (sections.empty()) runs.push_back({held});
      for (size_t s = 0; s < sections.size(); ++s) {
        const index::Interval& section = sections[s].indices;
        const index::Interval both{std::max(held.begin, section.begin),
                                   std::min(held.end, section.end)};
        if (both.begin < both.end) runs.push_back({both, s});
      }
    }
    return runs;
  }

  AxisPart whole_axis() const { return {{{0, 1}}, 0}; }

  void write_part(const HeldPart& part, size_t number) {
    const AxisPart rows = plane_.has_rows ? part.axes[plane_.rows] : whole_axis();
    const AxisPart columns = plane_.has_columns ? part.axes[plane_.columns] : whole_axis();
    const std::string ranks = rank_list(part.ranks);
    html_.open("g");
    html_.element("title", fmt::format("rank {}: {}", ranks, slices_text(part.axes)));
    constexpr size_t kDense = 32;
    const std::string look =
        fmt::format("part{} f{}", parts_.size() > kDense ? " dense" : "", number % kGridColours);
    const bool has_sections = !row_sections().empty() || !column_sections().empty();
    for (const Run& r : runs_of(rows, row_sections())) {
      for (const Run& c : runs_of(columns, column_sections())) {
        const std::string tint =
            has_sections ? fmt::format(" t{}", (r.section + c.section) % kTints) : "";
        write_cell(look + tint, part, ranks,
                   {columns_.at(c.indices.begin), rows_.at(r.indices.begin)},
                   {columns_.at(c.indices.end), rows_.at(r.indices.end)});
      }
    }
    html_.close();
  }

  void write_cell(const std::string& look, const HeldPart& part, const std::string& ranks,
                  Point from, Point to) {
    rectangle(look, from, to);
    const bool has_replicas = part.ranks.size() > 1;
    if (has_replicas) rectangle("hatch", from, to);
    const double width = to.x - from.x, height = to.y - from.y;
    const std::string count = plural(static_cast<i64>(part.ranks.size()), "rank");
    for (const std::string& text : {ranks, count}) {
      const double wanted = kCharacter * static_cast<double>(text.size() + 1);
      if (wanted < width && kLineHeight <= height)
        return label(text, {(from.x + to.x) / 2, middle(from.y, to.y)}, "middle");
      if (wanted < height && kLineHeight <= width)
        return upright_label(text, {middle(from.x, to.x), (from.y + to.y) / 2});
    }
    lacks_labels_ = true;
  }

  /// Baseline of a label in the middle between two heights.
  static double middle(double from, double to) {
    constexpr double kBaseline = 4;
    return (from + to) / 2 + kBaseline;
  }

  void write_sections() {
    constexpr double kGap = 5;
    for (const DrawnSection& section : row_sections()) {
      const double from = rows_.at(section.indices.begin), to = rows_.at(section.indices.end);
      if (section.indices.begin > 0) rule_line({kGridLeft, from}, {columns_.end(), from}, section);
      name_section(section.name, to - from >= kLineHeight,
                   {columns_.end() + kGap, middle(from, to)}, "start");
    }
    for (const DrawnSection& section : column_sections()) {
      const double from = columns_.at(section.indices.begin), to = columns_.at(section.indices.end);
      if (section.indices.begin > 0) rule_line({from, kGridTop}, {from, rows_.end()}, section);
      const double wanted = kCharacter * static_cast<double>(section.name.size());
      name_section(section.name, to - from >= wanted, {(from + to) / 2, rows_.end() + kLineHeight},
                   "middle");
    }
  }

  void name_section(const std::string& name, bool fits, Point at, std::string_view anchor) {
    if (name.empty()) return;
    if (fits) {
      label(name, at, anchor);
    } else {
      lacks_labels_ = true;
    }
  }

  void rule_line(Point from, Point to, const DrawnSection& section) {
    html_.open("line", {{"class", "rule"},
                        {"x1", coordinate(from.x)},
                        {"y1", coordinate(from.y)},
                        {"x2", coordinate(to.x)},
                        {"y2", coordinate(to.y)},
                        {"data-at", section.begin.pointer()},
                        {"data-value", section.begin.json()}});
    html_
        .element("title",
                 fmt::format("{} begins at {}", section.name.empty() ? "a section" : section.name,
                             section.indices.begin))
        .close();
  }

  std::string axis_name(size_t axis) const {
    const std::string logical = rule_["example"]["axes"][axis]["logical"].text();
    return logical.empty() ? fmt::format("axis {}", axis) : logical;
  }

  void write_axis_labels() {
    constexpr double kGap = 6, kBelow = 14;
    if (plane_.has_columns) {
      extent_label(axis_name(plane_.columns) + ": ", shape_[plane_.columns],
                   {kGridLeft + kGridWidth / 2, kGridTop - kGap}, "middle");
    }
    if (plane_.has_rows) {
      const double height = (kGridTop + rows_.end()) / 2;
      extent_label("", shape_[plane_.rows], {kGridLeft - kGap, height + kBelow}, "end");
      label(shortened(axis_name(plane_.rows)), {kGridLeft - kGap, height}, "end");
    }
  }

  /// Number of devices whose part is padded on an axis.
  size_t padded(size_t axis) const {
    size_t devices = 0;
    for (const HeldPart& part : parts_) {
      if (part.axes[axis].padding > 0) devices += part.ranks.size();
    }
    return devices;
  }

  /// Writes a dotted strip beside the border of the tensor from one point to another.
  void write_padding(Point from, Point to, size_t axis) {
    constexpr double kGap = 6, kStrip = 14, kBaseline = 11;
    const bool is_below = from.y == to.y;
    const Point corner{from.x + (is_below ? 0 : kGap), from.y + (is_below ? kGap : 0)};
    const Point end{is_below ? to.x : corner.x + kStrip, is_below ? corner.y + kStrip : to.y};
    html_.open("g").element("title", fmt::format("axis {} is padded on {}", axis,
                                                 plural(static_cast<i64>(padded(axis)), "rank")));
    rectangle("dots", corner, end);
    if (is_below) {
      label(fmt::format("padding on {}", plural(static_cast<i64>(padded(axis)), "rank")),
            {(corner.x + end.x) / 2, corner.y + kBaseline}, "middle");
    }
    html_.close();
  }

  static std::string shortened(const std::string& text) {
    constexpr size_t kMost = 12;
    return text.size() <= kMost ? text : text.substr(0, kMost - 2) + "..";
  }

  void write_caption(bool has_padding) {
    std::string text;
    const bool has_replicas =
        std::ranges::any_of(parts_, [](const HeldPart& part) { return part.ranks.size() > 1; });
    if (has_replicas) text += "Hatched: several ranks hold the same shard. ";
    for (const Sections* sections : {&row_sections(), &column_sections()}) {
      if (sections->empty()) continue;
      const std::string names = names_of(*sections, {0, sections->back().indices.end});
      text += fmt::format("Tints: {} sections{}, each cut by itself. ", sections->size(),
                          names.empty() ? "" : ", " + names);
    }
    if (has_padding) text += "Dotted: padding, which no element of the model fills. ";
    if (!plane_.not_shown.empty())
      text += fmt::format("Also cut, not drawn: axis {}. ", fmt::join(plane_.not_shown, ", "));
    if (lacks_labels_) text += "Too narrow for names: the table has them. ";
    if (!text.empty()) html_.element("figcaption", text);
  }

  HtmlWriter& html_;
  const JsonView& rule_;
  const std::vector<HeldPart>& parts_;
  JsonView shape_;
  std::vector<Sections> sections_;  ///< by axis
  Sections none_;
  Plane plane_;
  Scale rows_, columns_;
  bool lacks_labels_ = false;  ///< some part is too small for the names of its devices
};

}  // namespace

void write_rule_facts(Page& page, const JsonView& rule) {
  const JsonView example = rule["example"];
  page.html().open("p", {{"class", "soft"}});
  page.count(rule["tensors"]).text(rule["tensors"].count() == 1 ? " tensor, " : " tensors, ");
  page.bytes(rule["bytes"]).text("; ");
  page.html().element("code", example["name"].text());
  page.text(fmt::format(" {} ", example["dtype"].text()));
  for (const JsonView& extent : example["shape"].elements()) {
    page.text(extent.pointer() == example["shape"][size_t{0}].pointer() ? "" : " x ").count(extent);
  }
  page.html().close();
}

bool is_whole(const JsonView& rule, i64 devices) {
  const std::vector<HeldPart> parts = read_parts(rule["example"]);
  return !rule.has("owners") && parts.size() == 1 && devices > 1 &&
         static_cast<i64>(parts[0].ranks.size()) == devices;
}

void write_holders(Page& page, const JsonView& rule, i64 devices) {
  const std::vector<HeldPart> parts = read_parts(rule["example"]);
  write_owners(page, rule);
  if (is_whole(rule, devices)) {
    page.note("Every rank holds the whole tensor.");
  } else {
    Drawing(page, rule, parts).write();
    write_parts_table(page, rule["example"], parts);
  }
}

void write_tensor_grid(Page& page, const JsonView& rule, i64 devices) {
  page.html().line_break().open("article").element("h3", rule["example"]["rule"].text());
  write_rule_facts(page, rule);
  write_holders(page, rule, devices);
  page.html().close();
}

}  // namespace shardtool::cli
