#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "lib/plan/holders.h"

namespace shardtool::plan {

/// Numbers holders by content: equal holders get the same number, from any source. The holder sets
/// must outlive the pool.
class LayoutPool {
 public:
  /// O(1) for a known set, else O(its holders).
  int number(const Holders& holders);

 private:
  int set_number(const index::HolderSet& set);

  std::unordered_map<const index::HolderSet*, int> known_sets_;
  std::unordered_multimap<std::uint64_t, std::pair<const index::HolderSet*, int>> sets_by_hash_;
  std::map<std::vector<i64>, int> ranks_;
  std::map<std::pair<int, int>, int> numbers_;
};

}  // namespace shardtool::plan
