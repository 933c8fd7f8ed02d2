#include "lib/index/holder_set.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/name_map.h"

namespace shardtool::index {
namespace {

/// Hash with a random key per process, because regions may come from manifests.
template <class Value>
std::uint64_t hash_of(std::span<const Value> values) {
  return NameHash()({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::uint64_t hash_of(const AxisMap& map) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  return hash_of(map.pieces()) ^ static_cast<std::uint64_t>(map.local_size()) * kOdd;
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
  const auto number_of = [&maps](int number) -> const AxisMap& {
    return maps[static_cast<size_t>(number)];
  };
  const auto known =
      numbers.find(hash_of(map), [&](int number) { return number_of(number) == map; });
  if (known) return *known;
  maps.push_back(map);
  numbers.append([&](int number) { return hash_of(number_of(number)); });
  return static_cast<int>(maps.size()) - 1;
}

int HolderSet::add(const Region& region) {
  if (global_shape(region) != shape_) {
    throw Error(ErrorCode::kInternal, "a holder's region belongs to another shape");
  }
  for (size_t axis = 0; axis < region.size(); ++axis) {
    picks_.push_back(map_number(static_cast<int>(axis), region[axis]));
  }
  const int holder = size_++;
  const auto group = group_number(pick(holder));
  group_of_.push_back(group ? *group : static_cast<int>(first_of_group_.size()));
  if (group) {
    auto& replicas = replicas_[*group];
    if (replicas.empty()) replicas.push_back(first_of_group_[static_cast<size_t>(*group)]);
    replicas.push_back(holder);
  } else {
    first_of_group_.push_back(holder);
    group_numbers_.append(
        [this](int number) { return hash_of(pick(first_of_group_[static_cast<size_t>(number)])); });
  }
  return holder;
}

std::optional<int> HolderSet::group_number(std::span<const int> wanted) const {
  return group_numbers_.find(hash_of(wanted), [&](int group) {
    const auto same = pick(first_of_group_[static_cast<size_t>(group)]);
    return std::equal(same.begin(), same.end(), wanted.begin(), wanted.end());
  });
}

bool HolderSet::is_whole() const {
  return size_ == 1 && region(0) == whole_region(shape_);
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

std::span<const int> HolderSet::replicas(int holder) const {
  const int group = group_of_[static_cast<size_t>(holder)];
  const auto found = replicas_.find(group);
  if (found != replicas_.end()) return found->second;
  return {&first_of_group_[static_cast<size_t>(group)], 1};
}

}  // namespace shardtool::index
