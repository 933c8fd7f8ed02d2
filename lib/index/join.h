#pragma once

#include <functional>
#include <span>
#include <vector>

#include "shardtool/index/axis_index.h"
#include "shardtool/index/holder_set.h"

namespace shardtool::index {

/// A stretch of one axis over which nothing changes on either side: the common refinement of the
/// segments of a source and of a destination. The local index of its first element in the map of a
/// claim is claim.local + (begin - segment begin), already applied here.
struct AxisCell {
  i64 begin = 0;
  i64 size = 0;
  std::vector<Claim> sources;       ///< empty: no source has it
  std::vector<Claim> destinations;  ///< never empty
};

/// The cells of one axis that a destination wants, ascending.
/// Two sides with p and q pieces give at most p + q - 1 cells (without replicas).
std::vector<AxisCell> join_axis(std::span<const AxisMap> sources, std::span<const AxisMap> destinations);

/// move(s -> d) = place(s)^-1 o place(d) for all holders of one tensor at once: the product, over
/// its axes, of cells. Every element of the product is a box that a source holder and one or more
/// destination holders hold as a translation.
class Join {
 public:
  /// Requires equal shapes (kInternal).
  Join(const HolderSet& sources, const HolderSet& destinations);

  int rank() const { return static_cast<int>(cells_.size()); }
  std::span<const AxisCell> cells(int axis) const { return cells_[static_cast<size_t>(axis)]; }

  /// One cell per axis, a box of the global tensor.
  using Box = std::span<const AxisCell* const>;
  /// Calls visit(box) for every element of the product, last axis fastest. A scalar has one box.
  void for_each_box(const std::function<void(Box)>& visit) const;

  /// Holders that are replicas of each other (ascending; none when nobody has the box), and the local
  /// index, per axis, of the box's first element in each of them.
  struct Located {
    std::span<const int> holders;
    std::vector<i64> local;
  };
  /// The first source holders of the box in claim order.
  Located source_of(Box box) const;
  /// One entry per group of replicas among the destinations.
  std::vector<Located> destinations_of(Box box) const;

 private:
  const HolderSet* sources_;
  const HolderSet* destinations_;
  std::vector<std::vector<AxisCell>> cells_;
};

}  // namespace shardtool::index
