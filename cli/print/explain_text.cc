#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/table.h"
#include "cli/print/text.h"
#include "lib/api/axis.h"
#include "lib/api/explain.h"
#include "lib/base/text.h"

/// Prints how a tensor, or one logical axis, is cut.
namespace shardtool::cli {
namespace {

Table axes_table(const std::vector<api::ExplainAxis>& axes) {
  Table table{{{"axis"}, {"cut"}, {"over"}, {"extent", true}, {"parts", true}}, {}};
  for (const auto& axis : axes) {
    const auto extent =
        axis.rounded == axis.extent
            ? format_count(axis.extent)
            : fmt::format("{} (up to {})", format_count(axis.extent), format_count(axis.rounded));
    table.rows.push_back(
        {axis.logical, axis.expression, axis.over, extent, format_count(axis.physical_size)});
  }
  return table;
}

/// Draws which part of a range of an axis is held: "##....##....", one character per part of equal
/// length; a part that is held in part counts as held.
std::string range_picture(const index::AxisMap& axis, const index::Interval& range, i64 length) {
  std::string picture(static_cast<size_t>(length), '.');
  const double scale = static_cast<double>(length) / static_cast<double>(range.end - range.begin);
  const auto place = [&](i64 global) {
    return static_cast<size_t>(static_cast<double>(global - range.begin) * scale);
  };
  for (const index::Piece& piece : axis.pieces()) {
    const i64 begin = std::max(piece.global, range.begin);
    const i64 end = std::min(piece.global_end(), range.end);
    if (begin >= end) continue;
    for (size_t at = place(begin); at <= place(end - 1); ++at) picture[at] = '#';
  }
  return picture;
}

/// Draws an axis, section by section: "####....|#.|#.".
std::string axis_picture(const index::AxisMap& axis,
                         const std::vector<api::InspectSection>& sections) {
  constexpr i64 kLength = 24;
  const i64 extent = axis.global_size();
  std::string picture;
  for (size_t s = 0; s < std::max<size_t>(1, sections.size()); ++s) {
    const index::Interval range{sections.empty() ? 0 : sections[s].begin,
                                s + 1 < sections.size() ? sections[s + 1].begin : extent};
    const i64 elements = range.end - range.begin;
    const i64 share = extent == 0 ? 0 : (kLength * elements + extent / 2) / extent;
    const i64 length = std::min(elements, std::max<i64>(share, 1));
    picture += (s == 0 ? "" : "|") + range_picture(axis, range, length);
  }
  return picture;
}

/// "axis 0: q|k|v".
std::string picture_title(size_t axis, const std::vector<api::InspectSection>& sections) {
  std::string names;
  for (const api::InspectSection& section : sections) {
    if (!section.name.empty()) names += (names.empty() ? ": " : "|") + section.name;
  }
  return fmt::format("axis {}{}", axis, names);
}

/// Axes of which the devices hold different parts.
std::vector<size_t> cut_axes(const std::vector<api::InspectShard>& shards) {
  std::vector<size_t> cut;
  for (size_t a = 0; !shards.empty() && a < shards.front().region.size(); ++a) {
    const auto differs = [&](const api::InspectShard& shard) {
      return !(shard.region[a] == shards.front().region[a]);
    };
    if (std::ranges::any_of(shards, differs)) cut.push_back(a);
  }
  return cut;
}

/// Formats as "[0, 4) pad 2 x [0, 8)", with "copied" in place of "pad" on axes with copies.
std::string slices_text(const index::Region& region, const std::vector<api::ExplainAxis>& axes) {
  if (region.empty()) return to_string(region);
  std::vector<std::string> texts;
  for (size_t a = 0; a < region.size(); ++a) {
    const bool has_copies = a < axes.size() && axes[a].has_copies;
    texts.push_back(to_string(region[a], has_copies ? "copied" : "pad"));
  }
  return fmt::format("{}", fmt::join(texts, " x "));
}

Table shards_table(const api::InspectTensor& tensor, const std::vector<api::ExplainAxis>& axes) {
  const std::vector<api::InspectShard>& shards = tensor.shards;
  Table table{{{"rank", true}, {"bytes", true}, {"shape"}, {"slices"}}, {}};
  const std::vector<size_t> cut = cut_axes(shards);
  for (const size_t axis : cut)
    table.columns.push_back({picture_title(axis, tensor.axes[axis].sections)});
  const bool has_files = !shards.empty() && !shards.front().file.empty();
  if (has_files) table.columns.push_back({"file"});
  for (const auto& shard : shards) {
    auto& row = table.rows.emplace_back();
    row = {format_count(shard.rank), format_bytes(shard.bytes),
           to_string(index::local_shape(shard.region)), slices_text(shard.region, axes)};
    for (const size_t axis : cut)
      row.push_back(axis_picture(shard.region[axis], tensor.axes[axis].sections));
    if (has_files) row.push_back(shard.file);
  }
  return table;
}

/// Formats as "'qkv.weight', [0, 16) [48, 64) of axis 0"; of a stack "'experts' at 3, ...".
std::string part_text(const api::StoredPart& part) {
  constexpr size_t kMostRanges = 4;
  std::string text = fmt::format("'{}'", quote_for_message(part.tensor));
  if (!part.at.empty()) text += fmt::format(" at {}", fmt::join(part.at, ", "));
  const auto pieces = part.along.pieces();
  for (size_t i = 0; i < std::min(pieces.size(), kMostRanges); ++i) {
    text += fmt::format("{} [{}, {})", i == 0 ? "," : "", pieces[i].local, pieces[i].local_end());
  }
  if (pieces.size() > kMostRanges) {
    text += fmt::format(" and {} more", format_count(std::ssize(pieces) - i64{kMostRanges}));
  }
  return pieces.empty() ? text : fmt::format("{} of axis {}", text, part.axis);
}

}  // namespace

void print_text(Session& session, const api::ExplainReport& report) {
  const auto& style = session.out_style();
  const auto& tensor = report.tensor;
  auto& out = session.out();
  out.write(fmt::format("{}  {} {}  {}\n", style.bold(quote_for_message(tensor.name)), tensor.dtype,
                        to_string(tensor.shape), format_bytes(tensor.bytes)));
  if (report.part_of) out.write(labelled(style, "part of", part_text(*report.part_of)));
  out.write(labelled(style, "mesh", to_string(report.mesh)));
  out.write(labelled(
      style, "rule",
      fmt::format("{}  {}", quote_for_message(report.rule), quote_for_message(report.rule_place))));
  if (tensor.strategy != "dims") {
    const auto convention = tensor.convention.empty() ? "" : " (" + tensor.convention + ")";
    out.write(labelled(style, "strategy", quote_for_message(tensor.strategy) + convention));
  }
  out.write(labelled(style, "why", quote_for_message(report.why, 1000)));
  for (const auto& alteration : report.alterations) {
    out.write(labelled(style, "alters", quote_for_message(alteration)));
  }
  if (!report.axes.empty()) print_table(out, axes_table(report.axes), TableFormat::kText);
  print_table(out, shards_table(tensor, report.axes), TableFormat::kText);
}

void print_text(Session& session, const api::AxisReport& report) {
  auto& out = session.out();
  out.write(labelled(session.out_style(), "mesh", to_string(report.mesh)));
  print_table(out, axes_table({report.axis}), TableFormat::kText);
  Table slices{{{"rank", true}, {"slices"}}, {}};
  for (size_t rank = 0; rank < report.slices.size(); ++rank) {
    slices.rows.push_back({fmt::format("{}", rank), report.slices[rank]});
  }
  print_table(out, slices, TableFormat::kText);
}

}  // namespace shardtool::cli
