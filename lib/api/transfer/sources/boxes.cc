#include "lib/api/transfer/sources/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/text.h"

namespace shardtool::api {
namespace {

const index::AxisMap& map_of(const index::HolderSet& holders, int holder, int axis) {
  const auto number = static_cast<size_t>(holders.pick(holder)[static_cast<size_t>(axis)]);
  return holders.maps(axis)[number];
}

/// First axis on which the holder has several intervals or padding.
std::optional<int> first_broken_axis(const index::HolderSet& holders, int holder) {
  for (int axis = 0; axis < holders.rank(); ++axis) {
    if (!interval_begin(map_of(holders, holder, axis))) return axis;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_boxes(const index::HolderSet& holders,
                                         const std::vector<i64>& ranks) {
  std::map<Shape, int> beginning_at;
  for (int h = 0; h < holders.size(); ++h) {
    const i64 rank = ranks[static_cast<size_t>(h)];
    if (const auto axis = first_broken_axis(holders, h)) {
      const index::AxisMap& map = map_of(holders, h, *axis);
      const bool is_padded = map.image_size() != map.local_size();
      return fmt::format("on rank {}, axis {} has {}", rank, *axis,
                         is_padded ? "padding" : plural(std::ssize(map.pieces()), "interval"));
    }
    const auto [other, is_new] = beginning_at.try_emplace(box_begin(holders, h), h);
    if (is_new || std::ranges::equal(holders.pick(h), holders.pick(other->second))) continue;
    return fmt::format("the shards of ranks {} and {} begin at one index, but differ in size",
                       ranks[static_cast<size_t>(other->second)], rank);
  }
  return std::nullopt;
}

Shape box_begin(const index::HolderSet& holders, int holder) {
  Shape begin;
  for (int axis = 0; axis < holders.rank(); ++axis) {
    begin.push_back(interval_begin(map_of(holders, holder, axis)).value_or(0));
  }
  return begin;
}

}  // namespace shardtool::api
