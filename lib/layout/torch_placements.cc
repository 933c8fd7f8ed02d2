#include "lib/layout/torch_placements.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/index/region.h"

namespace shardtool::layout {
namespace {

using index::Interval;

Error inexpressible(std::string reason) {
  return Error(ErrorCode::kUnsupported, "the layout of the tensor is no DTensor: " + reason)
      .help("use its slices, or reshard to a mesh that cuts it evenly");
}

/// Holder of each rank of the mesh.
std::vector<int> holder_of_rank(const mesh::Mesh& mesh, std::span<const i64> ranks) {
  std::vector<int> holder(static_cast<size_t>(mesh.size()), -1);
  for (size_t h = 0; h < ranks.size(); ++h) {
    holder[static_cast<size_t>(ranks[h])] = static_cast<int>(h);
  }
  const auto without = std::ranges::find(holder, -1);
  if (without == holder.end()) return holder;
  throw inexpressible(fmt::format("rank {} does not hold it", without - holder.begin()));
}

/// The tensor axis on which two holders differ; nullopt if they are equal.
std::optional<int> differing_axis(const index::HolderSet& holders, int a, int b) {
  std::optional<int> axis;
  for (int d = 0; d < holders.rank(); ++d) {
    if (holders.pick(a)[static_cast<size_t>(d)] == holders.pick(b)[static_cast<size_t>(d)])
      continue;
    if (axis) throw inexpressible(fmt::format("one mesh axis cuts its axes {} and {}", *axis, d));
    axis = d;
  }
  return axis;
}

/// Part `index` of `parts` by torch.chunk.
Interval chunk_of(Interval whole, i64 parts, i64 index) {
  const i64 size = ceil_div(whole.size(), parts);
  const auto cut = [&](i64 at) { return whole.begin + std::min(at * size, whole.size()); };
  return {cut(index), cut(index + 1)};
}

/// Intervals that DTensor gives a rank.
std::vector<Interval> intervals_of(const mesh::Mesh& mesh, const TorchPlacements& placements,
                                   const Shape& shape, i64 rank) {
  std::vector<Interval> intervals;
  for (const i64 extent : shape) intervals.push_back({0, extent});
  const mesh::Coordinate coordinate = mesh.coordinate(rank);
  for (size_t m = 0; m < placements.size(); ++m) {
    if (!placements[m]) continue;
    Interval& cut = intervals[static_cast<size_t>(*placements[m])];
    cut = chunk_of(cut, mesh.axes()[m].size, coordinate[m]);
  }
  return intervals;
}

bool is_interval(const index::AxisMap& map, Interval interval) {
  if (map.local_size() != interval.size()) return false;
  return interval.size() == 0 || index::interval_begin(map) == interval.begin;
}

}  // namespace

TorchPlacements torch_placements(const mesh::Mesh& mesh, const index::HolderSet& holders,
                                 std::span<const i64> ranks) {
  const std::vector<int> holder = holder_of_rank(mesh, ranks);
  TorchPlacements placements;
  for (size_t m = 0; m < mesh.axes().size(); ++m) {
    mesh::Coordinate next(mesh.axes().size(), 0);
    next[m] = std::min<i64>(1, mesh.axes()[m].size - 1);
    placements.push_back(
        differing_axis(holders, holder[0], holder[static_cast<size_t>(mesh.rank(next))]));
  }
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    const index::Region region = holders.region(holder[static_cast<size_t>(rank)]);
    const auto expected = intervals_of(mesh, placements, holders.shape(), rank);
    if (std::ranges::equal(region, expected, is_interval)) continue;
    throw inexpressible(fmt::format("rank {} holds {}", rank, index::to_string(region)));
  }
  return placements;
}

}  // namespace shardtool::layout
