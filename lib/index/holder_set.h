#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/number_table.h"
#include "lib/index/region.h"

namespace shardtool::index {

/// Every holder of one tensor, factored by axis. The map of holder h on axis a is
/// maps(a)[pick(h)[a]]; holders with equal picks are replicas of each other.
///
/// H1 the maps of one axis are distinct and share their global size, the extent of the tensor
/// H2 every pick is in range
class HolderSet {
 public:
  /// Starts without holders; `shape` is that of the whole tensor.
  explicit HolderSet(Shape shape);
  /// One holder of the whole tensor.
  static HolderSet whole(const Shape& shape);
  /// Set in which holder h has regions[h]. Throws kInternal when a region's global shape is not
  /// `shape`.
  static HolderSet of(const Shape& shape, std::span<const Region> regions);

  /// Appends a holder and returns its index.
  int add(const Region& region);

  const Shape& shape() const { return shape_; }
  int size() const { return size_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  std::span<const AxisMap> maps(int axis) const { return maps_[static_cast<size_t>(axis)]; }
  std::span<const int> pick(int holder) const {
    return std::span(picks_).subspan(static_cast<size_t>(holder) * shape_.size(), shape_.size());
  }
  Region region(int holder) const;
  /// True if there is one holder, and it has every element at its place.
  bool is_whole() const;
  /// Equals local_shape(region(holder)), without building the region.
  Shape local_shape(int holder) const;
  /// First holder of every group of replicas, ascending.
  std::span<const int> firsts() const { return first_of_group_; }
  /// Holders with the pick of this one, ascending; itself among them.
  std::span<const int> replicas(int holder) const;

 private:
  int map_number(int axis, const AxisMap& map);
  std::optional<int> group_number(std::span<const int> pick) const;

  Shape shape_;
  std::vector<std::vector<AxisMap>> maps_;
  std::vector<NumberTable> map_numbers_;
  int size_ = 0;
  std::vector<int> picks_;           ///< picks of all holders, concatenated
  std::vector<int> group_of_;        ///< number of each holder's group with equal picks
  std::vector<int> first_of_group_;  ///< first holder of each group
  NumberTable group_numbers_;
  std::unordered_map<int, std::vector<int>> replicas_;  ///< by group, for groups of two or more
};

}  // namespace shardtool::index
