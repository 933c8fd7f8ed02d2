#include "lib/index/coverage.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shardtool::index {
namespace {

using Gap = std::optional<std::vector<Interval>>;

/// Numbers of maps, over all sets, that an axis remembers: n boxes that overlap have n^2.
constexpr size_t kMostRemembered = 1 << 20;

class GapSearch {
 public:
  explicit GapSearch(const HolderSet& holders) : holders_(holders) {}

  /// Returns the first gap of some holders in the axes from `axis` on.
  Gap run(size_t axis, const std::vector<int>& among) const {
    const Shape& shape = holders_.shape();
    if (among.empty()) {
      std::vector<Interval> all;
      for (size_t a = axis; a < shape.size(); ++a) all.push_back({0, shape[a]});
      return all;
    }
    if (axis == shape.size()) return std::nullopt;
    const bool is_last = axis + 1 == shape.size();
    const auto by_map = holders_by_map(axis, among);
    const auto changes = changes_of(axis, by_map);
    std::set<int> maps;
    std::set<std::vector<int>> covered;  // maps whose holders have no gap in the next axes
    size_t remembered = 0;
    auto change = changes.begin();
    for (i64 begin = 0, end = 0; begin < shape[axis]; begin = end) {
      for (; change != changes.end() && change->at == begin; ++change) {
        if (change->begins) {
          maps.insert(change->map);
        } else {
          maps.erase(change->map);
        }
      }
      end = change == changes.end() ? shape[axis] : change->at;
      if (is_last && !maps.empty()) continue;
      remembered += maps.size();
      if (remembered > kMostRemembered) {
        covered.clear();
        remembered = maps.size();
      }
      if (!covered.emplace(maps.begin(), maps.end()).second) continue;
      std::vector<int> active;
      for (const int map : maps) {
        const std::vector<int>& of_map = by_map.at(map);
        active.insert(active.end(), of_map.begin(), of_map.end());
      }
      if (Gap gap = run(axis + 1, active)) {
        gap->insert(gap->begin(), {begin, end});
        return gap;
      }
    }
    return std::nullopt;
  }

 private:
  using HoldersByMap = std::map<int, std::vector<int>>;

  /// A place on an axis at which a piece of a map begins or ends.
  struct Change {
    i64 at = 0;
    bool begins = false;
    int map = 0;
  };

  HoldersByMap holders_by_map(size_t axis, const std::vector<int>& among) const {
    HoldersByMap by_map;
    for (const int holder : among) by_map[holders_.pick(holder)[axis]].push_back(holder);
    return by_map;
  }

  /// Ascending; at one place, ends come before begins.
  std::vector<Change> changes_of(size_t axis, const HoldersByMap& by_map) const {
    std::vector<Change> changes;
    for (const auto& [map, of_map] : by_map) {
      for (const Piece& piece :
           holders_.maps(static_cast<int>(axis))[static_cast<size_t>(map)].pieces()) {
        changes.push_back({piece.global, true, map});
        changes.push_back({piece.global_end(), false, map});
      }
    }
    std::ranges::sort(changes, {},
                      [](const Change& change) { return std::pair(change.at, change.begins); });
    return changes;
  }

  const HolderSet& holders_;
};

}  // namespace

std::optional<std::vector<Interval>> first_gap(const HolderSet& holders) {
  if (std::ranges::find(holders.shape(), 0) != holders.shape().end()) return std::nullopt;
  const auto distinct = holders.firsts();
  return GapSearch(holders).run(0, {distinct.begin(), distinct.end()});
}

bool covers(const HolderSet& holders) {
  return !first_gap(holders);
}

}  // namespace shardtool::index
