#include "shardtool/index/holder_set.h"

#include <algorithm>

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

std::uint64_t hash_of(std::span<const int> pick) {
  std::uint64_t hash = 0;
  for (const int number : pick) hash = mix(hash, number);
  return hash;
}

/// The number with this hash that satisfies `is_equal`, or nothing.
template <class IsEqual>
std::optional<int> find_number(const std::unordered_multimap<std::uint64_t, int>& numbers,
                               std::uint64_t hash, IsEqual is_equal) {
  const auto [first, last] = numbers.equal_range(hash);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return is_equal(entry.second); });
  if (found == last) return std::nullopt;
  return found->second;
}

}  // namespace

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
  const auto known = find_number(
      numbers, hash, [&](int number) { return maps[static_cast<size_t>(number)] == map; });
  if (known) return *known;
  const int number = static_cast<int>(maps.size());
  maps.push_back(map);
  numbers.emplace(hash, number);
  return number;
}

int HolderSet::add(const Region& region) {
  if (global_shape(region) != shape_) {
    throw Error(ErrorCode::kInternal, "a holder's region belongs to another shape");
  }
  for (size_t axis = 0; axis < region.size(); ++axis) {
    picks_.push_back(map_number(static_cast<int>(axis), region[axis]));
  }
  const int holder = size_++;
  if (const auto group = group_number(pick(holder))) {
    groups_[static_cast<size_t>(*group)].push_back(holder);
  } else {
    group_numbers_.emplace(hash_of(pick(holder)), static_cast<int>(groups_.size()));
    groups_.push_back({holder});
  }
  return holder;
}

std::optional<int> HolderSet::group_number(std::span<const int> wanted) const {
  return find_number(group_numbers_, hash_of(wanted), [&](int group) {
    const auto same = pick(groups_[static_cast<size_t>(group)].front());
    return std::equal(same.begin(), same.end(), wanted.begin(), wanted.end());
  });
}

Region HolderSet::region(int holder) const {
  Region region;
  const auto picked = pick(holder);
  for (size_t axis = 0; axis < picked.size(); ++axis) {
    region.push_back(maps_[axis][static_cast<size_t>(picked[axis])]);
  }
  return region;
}

Shape HolderSet::local_shape(int holder) const {
  const auto picked = pick(holder);
  Shape shape(picked.size());
  for (size_t a = 0; a < picked.size(); ++a) {
    shape[a] = maps_[a][static_cast<size_t>(picked[a])].local_size();
  }
  return shape;
}

std::span<const int> HolderSet::holders_with(std::span<const int> pick) const {
  const auto group = group_number(pick);
  if (!group) return {};
  return groups_[static_cast<size_t>(*group)];
}

}  // namespace shardtool::index
