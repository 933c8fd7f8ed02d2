#include "lib/plan/layout_pool.h"

#include <algorithm>

#include "lib/base/name_map.h"

namespace shardtool::plan {
namespace {

void mix(std::uint64_t& hash, i64 value) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  hash = (hash ^ static_cast<std::uint64_t>(value)) * kOdd;
  hash ^= hash >> 32;
}

std::uint64_t hash_of(const index::HolderSet& set) {
  std::uint64_t hash = NameHash()("");  // random key, so that a manifest cannot cause collisions
  for (const i64 extent : set.shape()) mix(hash, extent);
  for (int axis = 0; axis < set.rank(); ++axis) {
    for (const index::AxisMap& map : set.maps(axis)) {
      mix(hash, map.local_size());
      for (const index::Piece& piece : map.pieces()) {
        mix(hash, piece.local);
        mix(hash, piece.global);
        mix(hash, piece.size);
      }
    }
  }
  mix(hash, set.size());
  for (int holder = 0; holder < set.size(); ++holder) {
    for (const int pick : set.pick(holder)) mix(hash, pick);
  }
  return hash;
}

bool equal(const index::HolderSet& a, const index::HolderSet& b) {
  if (a.shape() != b.shape() || a.size() != b.size()) return false;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (!std::ranges::equal(a.maps(axis), b.maps(axis))) return false;
  }
  for (int holder = 0; holder < a.size(); ++holder) {
    if (!std::ranges::equal(a.pick(holder), b.pick(holder))) return false;
  }
  return true;
}

}  // namespace

int LayoutPool::set_number(const index::HolderSet& set) {
  const auto [known, is_new] = known_sets_.try_emplace(&set, 0);
  if (!is_new) return known->second;
  const std::uint64_t hash = hash_of(set);
  const auto [first, last] = sets_by_hash_.equal_range(hash);
  for (auto other = first; other != last; ++other) {
    if (equal(*other->second.first, set)) return known->second = other->second.second;
  }
  known->second = static_cast<int>(sets_by_hash_.size());
  sets_by_hash_.emplace(hash, std::pair(&set, known->second));
  return known->second;
}

int LayoutPool::number(const Holders& holders) {
  const int set = set_number(*holders.set);
  const int ranks = ranks_
                        .try_emplace(std::vector<i64>(holders.ranks.begin(), holders.ranks.end()),
                                     static_cast<int>(ranks_.size()))
                        .first->second;
  return numbers_.try_emplace({set, ranks}, static_cast<int>(numbers_.size())).first->second;
}

}  // namespace shardtool::plan
