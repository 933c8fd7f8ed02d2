#include "shardtool/index/join.h"

#include <algorithm>

#include "shardtool/base/error.h"

namespace shardtool::index {
namespace {

std::vector<Claim> shifted(std::span<const Claim> claims, i64 by) {
  std::vector<Claim> out(claims.begin(), claims.end());
  for (Claim& claim : out) claim.local += by;
  return out;
}

/// Calls visit(pick, local) for every combination of one claim per axis until it returns true.
template <class ClaimsOf, class Visit>
void for_each_combination(Join::Box box, ClaimsOf claims_of, Visit visit) {
  const size_t rank = box.size();
  std::vector<size_t> at(rank, 0);
  std::vector<int> pick(rank);
  std::vector<i64> local(rank);
  for (const AxisCell* cell : box) {
    if (claims_of(*cell).empty()) return;
  }
  while (true) {
    for (size_t a = 0; a < rank; ++a) {
      const Claim& claim = claims_of(*box[a])[at[a]];
      pick[a] = claim.map;
      local[a] = claim.local;
    }
    if (visit(pick, local)) return;
    size_t a = rank;
    while (a > 0 && ++at[a - 1] == claims_of(*box[a - 1]).size()) at[--a] = 0;
    if (a == 0) return;
  }
}

}  // namespace

std::vector<AxisCell> join_axis(std::span<const AxisMap> sources,
                                std::span<const AxisMap> destinations) {
  const AxisIndex src_index(sources);
  const AxisIndex dst_index(destinations);
  const auto src = src_index.segments();
  std::vector<AxisCell> cells;
  size_t s = 0;
  for (const AxisIndex::Segment& dst : dst_index.segments()) {
    i64 at = dst.begin;
    while (at < dst.end) {
      while (s < src.size() && src[s].end <= at) ++s;
      const bool held = s < src.size() && src[s].begin <= at;
      const i64 change = s == src.size() ? dst.end : held ? src[s].end : src[s].begin;
      const i64 end = std::min(change, dst.end);
      AxisCell cell{at, end - at, {}, shifted(dst.claims, at - dst.begin)};
      if (held) cell.sources = shifted(src[s].claims, at - src[s].begin);
      cells.push_back(std::move(cell));
      at = end;
    }
  }
  return cells;
}

Join::Join(const HolderSet& sources, const HolderSet& destinations)
    : sources_(&sources), destinations_(&destinations) {
  if (sources.shape() != destinations.shape()) {
    throw Error(ErrorCode::kInternal, "joined holders belong to tensors of different shapes");
  }
  for (int axis = 0; axis < sources.rank(); ++axis) {
    cells_.push_back(join_axis(sources.maps(axis), destinations.maps(axis)));
  }
}

void Join::for_each_box(const std::function<void(Box)>& visit) const {
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

Join::Located Join::source_of(Box box) const {
  Located found;
  for_each_combination(
      box, [](const AxisCell& cell) -> const std::vector<Claim>& { return cell.sources; },
      [&](const std::vector<int>& pick, const std::vector<i64>& local) {
        const auto holders = sources_->holders_with(pick);
        if (holders.empty()) return false;
        found = {holders, local};
        return true;
      });
  return found;
}

std::vector<Join::Located> Join::destinations_of(Box box) const {
  std::vector<Located> found;
  for_each_combination(
      box, [](const AxisCell& cell) -> const std::vector<Claim>& { return cell.destinations; },
      [&](const std::vector<int>& pick, const std::vector<i64>& local) {
        const auto holders = destinations_->holders_with(pick);
        if (!holders.empty()) found.push_back({holders, local});
        return false;
      });
  return found;
}

}  // namespace shardtool::index
