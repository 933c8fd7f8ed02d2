#include "lib/mesh/rank_groups.h"

#include <algorithm>

namespace shardtool::mesh {

RankGroups::RankGroups(const Mesh& mesh, const std::vector<i64>& ranks,
                       const std::vector<std::string>& along)
    : mesh_(mesh) {
  for (size_t a = 0; a < mesh.axes().size(); ++a) {
    if (std::ranges::find(along, mesh.axes()[a].name) != along.end()) along_.push_back(a);
  }
  for (const i64 rank : ranks) groups_[key(rank)].push_back(rank);
}

const std::vector<i64>& RankGroups::of(i64 rank) const {
  static const std::vector<i64> kNone;
  const auto found = groups_.find(key(rank));
  return found == groups_.end() ? kNone : found->second;
}

i64 RankGroups::key(i64 rank) const {
  Coordinate cell = mesh_.coordinate(rank);
  for (const size_t a : along_) cell[a] = 0;
  return mesh_.rank(cell);
}

}  // namespace shardtool::mesh
