#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lib/mesh/mesh.h"

namespace shardtool::mesh {

/// Ranks in groups whose members differ on some mesh axes only.
class RankGroups {
 public:
  /// Groups `ranks` by their indices on all axes but `along`, names of which the mesh may lack
  /// some. Refers to the mesh, which must outlive it.
  RankGroups(const Mesh& mesh, const std::vector<i64>& ranks,
             const std::vector<std::string>& along);

  /// Returns the members of the group that a rank, which need not be one of them, belongs to, in
  /// the order of `ranks`; empty if there are none.
  const std::vector<i64>& of(i64 rank) const;

 private:
  /// Rank of the cell with index 0 along the axes, which all members share.
  i64 key(i64 rank) const;

  const Mesh& mesh_;
  std::vector<size_t> along_;
  std::unordered_map<i64, std::vector<i64>> groups_;
};

}  // namespace shardtool::mesh
