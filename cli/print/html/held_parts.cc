#include "cli/print/html/held_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

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

}  // namespace shardtool::cli
