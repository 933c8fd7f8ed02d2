#include "cli/print/html/held_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/html/device_groups.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

AxisPart read_axis(const JsonView& slices) {
  AxisPart part;
  for (const JsonView& slice : slices.elements()) {
    if (slice.has("pad")) {
      part.padding += slice["pad"].count();
    } else {
      part.held.push_back({slice[0].count(), slice[1].count()});
    }
  }
  return part;
}

constexpr size_t kMostRows = 24;

void write_slices(Page& page, const JsonView& slices,
                  const std::vector<std::vector<DrawnSection>>& sections) {
  page.cell([&] {
    for (size_t a = 0; a < slices.size(); ++a) {
      if (a > 0) page.text(" x ");
      for (const JsonView& slice : slices[a].elements()) {
        if (slice.has("pad")) {
          page.text(" ").count(slice["pad"]).text(" padded");
          continue;
        }
        const std::string names = names_of(sections[a], {slice[0].count(), slice[1].count()});
        page.text(names.empty() ? " [" : fmt::format(" {} [", names));
        page.count(slice[0]).text(", ").count(slice[1]).text(")");
      }
    }
  });
}

}  // namespace

std::vector<HeldPart> read_parts(const JsonView& tensor) {
  const JsonView shards = tensor["shards"];
  std::vector<HeldPart> parts;
  for (size_t s = 0; s < shards.size(); ++s) {
    std::vector<AxisPart> axes;
    for (const JsonView& slices : shards[s]["slices"].elements()) axes.push_back(read_axis(slices));
    if (axes.size() != tensor["shape"].size())
      throw Error(ErrorCode::kInternal,
                  fmt::format("'{}' has other axes than its tensor", shards[s].pointer()));
    const auto same = std::ranges::find(parts, axes, &HeldPart::axes);
    if (same != parts.end()) {
      same->ranks.push_back(shards[s]["rank"].count());
    } else {
      parts.push_back({{shards[s]["rank"].count()}, std::move(axes), s});
    }
  }
  return parts;
}

std::vector<std::vector<DrawnSection>> read_sections(const JsonView& tensor) {
  std::vector<std::vector<DrawnSection>> axes(tensor["shape"].size());
  for (size_t a = 0; a < axes.size(); ++a) {
    const JsonView axis = tensor["axes"][a];
    if (!axis.has("sections")) continue;
    for (const JsonView& section : axis["sections"].elements()) {
      const i64 begin = section["begin"].count();
      if (!axes[a].empty()) axes[a].back().indices.end = begin;
      axes[a].push_back({{begin, tensor["shape"][a].count()},
                         section.has("name") ? section["name"].text() : "",
                         section["begin"]});
    }
  }
  return axes;
}

std::string names_of(const std::vector<DrawnSection>& sections, const index::Interval& held) {
  std::string names;
  for (const DrawnSection& section : sections) {
    const bool is_held = section.indices.begin < held.end && held.begin < section.indices.end;
    if (is_held && !section.name.empty()) names += (names.empty() ? "" : "|") + section.name;
  }
  return names;
}

std::string slices_text(const std::vector<AxisPart>& axes) {
  std::string text;
  for (const AxisPart& axis : axes) {
    if (!text.empty()) text += " x ";
    std::string one;
    for (const index::Interval& held : axis.held)
      one += fmt::format("{}[{}, {})", one.empty() ? "" : " ", held.begin, held.end);
    if (axis.padding > 0) one += fmt::format("{}{} padded", one.empty() ? "" : " ", axis.padding);
    text += one.empty() ? "nothing" : one;
  }
  return text.empty() ? "scalar" : text;
}

void write_parts_table(Page& page, const JsonView& tensor, const std::vector<HeldPart>& parts) {
  const auto sections = read_sections(tensor);
  page.html().open("details").element(
      "summary", fmt::format("{} as a table", plural(static_cast<i64>(parts.size()), "shard")));
  page.begin_table({"ranks", "#bytes", "shard"});
  for (size_t p = 0; p < std::min(parts.size(), kMostRows); ++p) {
    const JsonView shard = tensor["shards"][parts[p].first_shard];
    page.begin_row().text_cell(rank_list(parts[p].ranks)).bytes_cell(shard["bytes"]);
    write_slices(page, shard["slices"], sections);
    page.end_row();
  }
  page.end_table();
  page.note_rest(parts.size(), kMostRows, "shards");
  page.html().close();
}

}  // namespace shardtool::cli
