#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardtool/base/shape.h"
#include "shardtool/index/region.h"

namespace shardtool::index {

/// Every holder of one tensor, factored by axis. Holder h has, on axis a, the map
/// maps(a)[pick(h)[a]]; holders with equal picks are replicas of each other.
///
/// H1 the maps of one axis are distinct and share their global size, the extent of the tensor
/// H2 every pick is in range
class HolderSet {
 public:
  /// No holders yet; `shape` is the whole tensor's.
  explicit HolderSet(Shape shape);
  /// One holder of everything.
  static HolderSet whole(const Shape& shape);
  /// Holder h has regions[h]. Throws kInternal when a region's global shape is not `shape`.
  static HolderSet of(const Shape& shape, std::span<const Region> regions);

  /// Appends a holder and returns its number.
  int add(const Region& region);

  const Shape& shape() const { return shape_; }
  int size() const { return static_cast<int>(picks_.size()); }
  int rank() const { return static_cast<int>(shape_.size()); }
  std::span<const AxisMap> maps(int axis) const { return maps_[static_cast<size_t>(axis)]; }
  std::span<const int> pick(int holder) const { return picks_[static_cast<size_t>(holder)]; }
  Region region(int holder) const;
  /// The holders with this pick, ascending; empty when there are none.
  std::span<const int> holders_with(std::span<const int> pick) const;

 private:
  struct PickHash {
    size_t operator()(const std::vector<int>& pick) const;
  };
  int map_number(int axis, const AxisMap& map);

  Shape shape_;
  std::vector<std::vector<AxisMap>> maps_;
  std::vector<std::unordered_multimap<std::uint64_t, int>> map_numbers_;  // by hash of the map
  std::vector<std::vector<int>> picks_;
  std::unordered_map<std::vector<int>, std::vector<int>, PickHash> by_pick_;
};

}  // namespace shardtool::index
