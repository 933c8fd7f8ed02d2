#include "shardtool/index/holder_set.h"

#include "shardtool/base/error.h"

namespace shardtool::index {
namespace {

std::uint64_t mix(std::uint64_t hash, i64 value) {
  hash ^= static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash;
}

std::uint64_t hash_of(const AxisMap& map) {
  std::uint64_t hash = mix(0, map.local_size());
  for (const Piece& p : map.pieces()) hash = mix(mix(mix(hash, p.local), p.global), p.size);
  return hash;
}

}  // namespace

size_t HolderSet::PickHash::operator()(const std::vector<int>& pick) const {
  std::uint64_t hash = 0;
  for (const int number : pick) hash = mix(hash, number);
  return hash;
}

HolderSet::HolderSet(Shape shape)
    : shape_(std::move(shape)), maps_(shape_.size()), map_numbers_(shape_.size()) {}

HolderSet HolderSet::whole(const Shape& shape) {
  HolderSet set(shape);
  set.add(whole_region(shape));
  return set;
}

HolderSet HolderSet::of(const Shape& shape, std::span<const Region> regions) {
  HolderSet set(shape);
  for (const Region& region : regions) set.add(region);
  return set;
}

int HolderSet::map_number(int axis, const AxisMap& map) {
  auto& maps = maps_[static_cast<size_t>(axis)];
  auto& numbers = map_numbers_[static_cast<size_t>(axis)];
  const std::uint64_t hash = hash_of(map);
  const auto [first, last] = numbers.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (maps[static_cast<size_t>(it->second)] == map) return it->second;
  }
  const int number = static_cast<int>(maps.size());
  maps.push_back(map);
  numbers.emplace(hash, number);
  return number;
}

int HolderSet::add(const Region& region) {
  if (global_shape(region) != shape_) {
    throw Error(ErrorCode::kInternal, "a holder's region belongs to another shape");
  }
  std::vector<int> pick(region.size());
  for (size_t axis = 0; axis < region.size(); ++axis) {
    pick[axis] = map_number(static_cast<int>(axis), region[axis]);
  }
  const int holder = size();
  by_pick_[pick].push_back(holder);
  picks_.push_back(std::move(pick));
  return holder;
}

Region HolderSet::region(int holder) const {
  Region region;
  const auto picked = pick(holder);
  for (size_t axis = 0; axis < picked.size(); ++axis) {
    region.push_back(maps_[axis][static_cast<size_t>(picked[axis])]);
  }
  return region;
}

std::span<const int> HolderSet::holders_with(std::span<const int> pick) const {
  const auto found = by_pick_.find(std::vector<int>(pick.begin(), pick.end()));
  if (found == by_pick_.end()) return {};
  return found->second;
}

}  // namespace shardtool::index
