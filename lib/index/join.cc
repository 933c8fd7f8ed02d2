#include "lib/index/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lib/base/error.h"

namespace shardtool::index {
namespace {

/// Local indices of the box's first element in a holder of it.
std::vector<i64> local_in(const HolderSet& side, int holder, HolderJoin::Box box,
                          const AxisIndex::Segment* AxisCell::*segment_of) {
  const auto pick = side.pick(holder);
  std::vector<i64> local(box.size());
  for (size_t a = 0; a < box.size(); ++a) {
    const AxisIndex::Segment& segment = *(box[a]->*segment_of);
    const auto claim = std::ranges::lower_bound(segment.claims, pick[a], {}, &Claim::map);
    local[a] = claim->local + (box[a]->begin - segment.begin);
  }
  return local;
}

bool holds_something(const HolderSet& side, int holder) {
  const auto pick = side.pick(holder);
  for (size_t a = 0; a < pick.size(); ++a) {
    if (side.maps(static_cast<int>(a))[static_cast<size_t>(pick[a])].pieces().empty()) return false;
  }
  return true;
}

/// Maps that claim a cell: those of the sources, -1, those of the destinations.
std::vector<int> claiming_maps(const AxisCell& cell) {
  std::vector<int> maps;
  if (cell.source != nullptr) {
    for (const Claim& claim : cell.source->claims) maps.push_back(claim.map);
  }
  maps.push_back(-1);
  for (const Claim& claim : cell.destination->claims) maps.push_back(claim.map);
  return maps;
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
    : sources_(&sources),
      destinations_(&destinations),
      axes_(sources.shape().size()),
      cells_(sources.shape().size()) {
  if (sources.shape() != destinations.shape()) {
    throw Error(ErrorCode::kInternal, "joined holders belong to tensors of different shapes");
  }
  all_sources_ = add_all(sources);
  all_destinations_ = add_all(destinations);
  if (rank() > 0 && all_destinations_.count > 0) {
    add_cells(0, all_sources_, all_destinations_);
  }
}

HolderJoin::Range HolderJoin::add_all(const HolderSet& side) {
  const size_t first = holders_.size();
  std::ranges::copy_if(side.firsts(), std::back_inserter(holders_),
                       [&](int holder) { return holds_something(side, holder); });
  return {first, holders_.size() - first};
}

void HolderJoin::check_limits(size_t axis) const {
  if (cells_[axis].size() <= kMostCells && holders_.size() <= kMostHolders) return;
  throw Error(ErrorCode::kLimit, "the shards of a tensor overlap in too many ways")
      .note("shape", shardtool::to_string(sources_->shape()))
      .note("shards", fmt::format("{} and {}", sources_->size(), destinations_->size()));
}

HolderJoin::ByMap HolderJoin::by_map(const HolderSet& side, size_t axis, Range among) const {
  ByMap by_map;
  by_map.pairs.reserve(among.count);
  for (const int holder : holders(among))
    by_map.pairs.emplace_back(side.pick(holder)[axis], holder);
  std::ranges::sort(by_map.pairs);
  for (const auto& [map, holder] : by_map.pairs) {
    if (by_map.maps.empty() || by_map.maps.back() != map) by_map.maps.push_back(map);
  }
  return by_map;
}

const HolderJoin::JoinedAxis& HolderJoin::joined(size_t axis, const ByMap& sources,
                                                 const ByMap& destinations) {
  std::vector<int> key = sources.maps;
  key.push_back(-1);
  key.insert(key.end(), destinations.maps.begin(), destinations.maps.end());
  std::unique_ptr<JoinedAxis>& known = axes_[axis][std::move(key)];
  if (!known) {
    const auto number = static_cast<int>(axis);
    known = std::make_unique<JoinedAxis>(
        JoinedAxis{AxisIndex(sources_->maps(number), sources.maps),
                   AxisIndex(destinations_->maps(number), destinations.maps),
                   {}});
    known->cells = join_axis(known->sources, known->destinations);
  }
  return *known;
}

HolderJoin::Range HolderJoin::add_claimants(const ByMap& among, Range all,
                                            const AxisIndex::Segment* segment) {
  if (segment == nullptr) return {};
  if (segment->claims.size() == among.maps.size()) return all;
  const size_t first = holders_.size();
  for (const Claim& claim : segment->claims) {
    auto at = std::ranges::lower_bound(among.pairs, claim.map, {}, &std::pair<int, int>::first);
    for (; at != among.pairs.end() && at->first == claim.map; ++at) holders_.push_back(at->second);
  }
  std::sort(holders_.begin() + static_cast<std::ptrdiff_t>(first), holders_.end());
  return {first, holders_.size() - first};
}

HolderJoin::Range HolderJoin::add_cells(size_t axis, Range sources, Range destinations) {
  const ByMap from = by_map(*sources_, axis, sources);
  const ByMap to = by_map(*destinations_, axis, destinations);
  const JoinedAxis& axis_cells = joined(axis, from, to);
  const size_t count = axis_cells.cells.size();
  std::vector<Cell>& cells = cells_[axis];
  const size_t first = cells.size();
  for (const AxisCell& cell : axis_cells.cells) cells.push_back({cell, {}, {}, {}});
  // Maps of one piece each give fewer cells than that; more cells repeat the holders of others.
  const bool repeats = count > 2 * (from.maps.size() + to.maps.size());
  std::map<std::vector<int>, size_t> known;
  for (size_t i = first; i < first + count; ++i) {
    Cell& cell = cells[i];
    const size_t like = repeats ? known.emplace(claiming_maps(cell), i).first->second : i;
    if (like != i) {
      cell.sources = cells[like].sources;
      cell.destinations = cells[like].destinations;
      cell.inside = cells[like].inside;
    } else {
      cell.sources = add_claimants(from, sources, cell.source);
      cell.destinations = add_claimants(to, destinations, cell.destination);
      check_limits(axis);
      if (axis + 1 < axes_.size()) {
        cell.inside = add_cells(axis + 1, cell.sources, cell.destinations);
      }
    }
  }
  return {first, count};
}

void HolderJoin::for_each_box(const std::function<void(Box)>& visit) const {
  if (all_destinations_.count == 0) return;
  std::vector<const Cell*> box;
  const std::function<void()> walk = [&] {
    if (box.size() == axes_.size()) return visit(box);
    for (const Cell& cell : inside(box)) {
      box.push_back(&cell);
      walk();
      box.pop_back();
    }
  };
  walk();
}

std::span<const HolderJoin::Cell> HolderJoin::inside(Box box) const {
  const std::vector<Cell>& cells = cells_[box.size()];
  if (box.empty()) return cells;
  const Range range = box.back()->inside;
  return std::span(cells).subspan(range.first, range.count);
}

std::span<const int> HolderJoin::sources(Box box) const {
  return holders(box.empty() ? all_sources_ : box.back()->sources);
}

std::span<const int> HolderJoin::destinations(Box box) const {
  return holders(box.empty() ? all_destinations_ : box.back()->destinations);
}

std::vector<i64> HolderJoin::local_in_source(Box box, int holder) const {
  return local_in(*sources_, holder, box, &AxisCell::source);
}

std::vector<i64> HolderJoin::local_in_destination(Box box, int holder) const {
  return local_in(*destinations_, holder, box, &AxisCell::destination);
}

HolderJoin::Located HolderJoin::source_of(Box box) const {
  const auto having = sources(box);
  if (having.empty()) return {};
  return {sources_->replicas(having.front()), local_in_source(box, having.front())};
}

std::vector<HolderJoin::Located> HolderJoin::destinations_of(Box box) const {
  std::vector<Located> found;
  for (const int holder : destinations(box)) {
    found.push_back({destinations_->replicas(holder), local_in_destination(box, holder)});
  }
  return found;
}

Shape sizes(HolderJoin::Box box) {
  Shape sizes;
  for (const HolderJoin::Cell* cell : box) sizes.push_back(cell->size);
  return sizes;
}

i64 elements(HolderJoin::Box box) {
  i64 elements = 1;
  for (const HolderJoin::Cell* cell : box) elements *= cell->size;
  return elements;
}

}  // namespace shardtool::index
