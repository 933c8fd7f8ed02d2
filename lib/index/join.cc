#include "lib/index/join.h"

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::index {
namespace {

/// Calls visit(holders, local) for the holders of every combination of one claim per axis on the
/// segments of one side, until it returns true. `local` is the box's first element in them.
template <class Visit>
void for_each_claimant(const HolderSet& holders, HolderJoin::Box box,
                       const AxisIndex::Segment* AxisCell::*side, Visit visit) {
  const size_t rank = box.size();
  for (const AxisCell* cell : box) {
    if (cell->*side == nullptr) return;
  }
  std::vector<size_t> at(rank, 0);
  std::vector<int> pick(rank);
  std::vector<i64> local(rank);
  while (true) {
    for (size_t a = 0; a < rank; ++a) {
      const AxisIndex::Segment& segment = *(box[a]->*side);
      const Claim& claim = segment.claims[at[a]];
      pick[a] = claim.map;
      local[a] = claim.local + (box[a]->begin - segment.begin);
    }
    const auto claimants = holders.holders_with(pick);
    if (!claimants.empty() && visit(claimants, local)) return;
    size_t a = rank;
    while (a > 0 && ++at[a - 1] == (box[a - 1]->*side)->claims.size()) at[--a] = 0;
    if (a == 0) return;
  }
}

}  // namespace

std::vector<AxisCell> join_axis(const AxisIndex& sources, const AxisIndex& destinations) {
  const auto src = sources.segments();
  std::vector<AxisCell> cells;
  cells.reserve(src.size() + destinations.segments().size());
  size_t s = 0;
  for (const AxisIndex::Segment& dst : destinations.segments()) {
    for (i64 at = dst.begin; at < dst.end; at = cells.back().begin + cells.back().size) {
      while (s < src.size() && src[s].end <= at) ++s;
      const bool held = s < src.size() && src[s].begin <= at;
      const i64 change = s == src.size() ? dst.end : held ? src[s].end : src[s].begin;
      cells.push_back({at, std::min(change, dst.end) - at, held ? &src[s] : nullptr, &dst});
    }
  }
  return cells;
}

HolderJoin::HolderJoin(const HolderSet& sources, const HolderSet& destinations)
    : sources_(&sources), destinations_(&destinations) {
  if (sources.shape() != destinations.shape()) {
    throw Error(ErrorCode::kInternal, "joined holders belong to tensors of different shapes");
  }
  for (int axis = 0; axis < sources.rank(); ++axis) {
    source_axes_.emplace_back(sources.maps(axis));
    destination_axes_.emplace_back(destinations.maps(axis));
    cells_.push_back(join_axis(source_axes_.back(), destination_axes_.back()));
  }
}

void HolderJoin::for_each_box(const std::function<void(Box)>& visit) const {
  for (const auto& axis : cells_) {
    if (axis.empty()) return;
  }
  std::vector<size_t> at(cells_.size(), 0);
  std::vector<const AxisCell*> box(cells_.size());
  while (true) {
    for (size_t a = 0; a < box.size(); ++a) box[a] = &cells_[a][at[a]];
    visit(box);
    size_t a = box.size();
    while (a > 0 && ++at[a - 1] == cells_[a - 1].size()) at[--a] = 0;
    if (a == 0) return;
  }
}

HolderJoin::Located HolderJoin::source_of(Box box) const {
  Located found;
  for_each_claimant(*sources_, box, &AxisCell::source,
                    [&](std::span<const int> holders, std::vector<i64>& local) {
                      found = {holders, std::move(local)};
                      return true;
                    });
  return found;
}

std::vector<HolderJoin::Located> HolderJoin::destinations_of(Box box) const {
  std::vector<Located> found;
  for_each_claimant(*destinations_, box, &AxisCell::destination,
                    [&](std::span<const int> holders, const std::vector<i64>& local) {
                      found.push_back({holders, local});
                      return false;
                    });
  return found;
}

}  // namespace shardtool::index
