#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/index/axis_index.h"
#include "lib/index/holder_set.h"

namespace shardtool::index {

/// Interval of one axis with constant holders on both sides: the intersection of a source segment
/// and a destination segment.
///
///     sources       |-----s0-----|-----s1-----|
///     destinations     |------d0------|--d1--|
///     cells            |  s0 d0  |s1d0|s1 d1 |
struct AxisCell {
  i64 begin = 0;
  i64 size = 0;
  const AxisIndex::Segment* source = nullptr;       ///< null: no source holds it
  const AxisIndex::Segment* destination = nullptr;  ///< never null
};

/// Cells of one axis that the destinations cover, ascending; they point into the two indices. Two
/// sides with p and q segments give at most p + q - 1 cells if the sources have no gap.
std::vector<AxisCell> join_axis(const AxisIndex& sources, const AxisIndex& destinations);

/// Computes move(s -> d) = place(s)^-1 o place(d) for all holders of one tensor at once, as the
/// product of the cells of its axes. Every element of the product is a box that a source holder and
/// one or more destination holders hold as a translation. (The product may contain boxes that no
/// destination holds, if the holders are not a product themselves.)
class HolderJoin {
 public:
  /// Keeps references to both. Requires equal shapes (kInternal).
  HolderJoin(const HolderSet& sources, const HolderSet& destinations);

  int rank() const { return static_cast<int>(cells_.size()); }
  std::span<const AxisCell> cells(int axis) const { return cells_[static_cast<size_t>(axis)]; }

  /// One cell per axis, a box of the global tensor.
  using Box = std::span<const AxisCell* const>;
  /// Calls visit(box) for every element of the product, last axis fastest. A scalar has one box.
  void for_each_box(const std::function<void(Box)>& visit) const;

  /// Replicas that hold a box (ascending; may be empty) and, per axis, the local index of the box's
  /// first element in each of them.
  struct Located {
    std::span<const int> holders;
    std::vector<i64> local;
  };
  /// First source holders of the box in claim order.
  Located source_of(Box box) const;
  /// Destinations of the box, one entry per group of replicas.
  std::vector<Located> destinations_of(Box box) const;

 private:
  const HolderSet* sources_;
  const HolderSet* destinations_;
  std::vector<AxisIndex> source_axes_;
  std::vector<AxisIndex> destination_axes_;
  std::vector<std::vector<AxisCell>> cells_;
};

}  // namespace shardtool::index
