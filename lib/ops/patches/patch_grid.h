#pragma once

#include <algorithm>
#include <vector>

#include "lib/ops/bound_op.h"

namespace shardtool::ops {

/// Places of an image's patches, which are the positions of a sequence. The patches form squares,
/// and the squares a grid: the widest square grid that they fill, and at least one square wide.
class PatchGrid {
 public:
  /// Makes a grid of squares of side * side patches. Requires 1 <= length, 1 <= side.
  PatchGrid(Patches::Order order, i64 side, i64 length);

  struct Place {
    i64 row, column;
  };
  Place place(i64 patch) const;
  /// Returns the patches of a square, row by row. After the last patch it continues with the first.
  std::vector<i64> square(i64 number) const;
  /// Number of squares, at least one.
  i64 squares() const { return std::max<i64>(1, length_ / (side_ * side_)); }
  i64 width() const { return width_; }

 private:
  Place corner(i64 square) const;

  Patches::Order order_;
  i64 side_, length_, width_;
};

/// Throws what root_of throws.
PatchGrid grid_of(const Patches& patches, const ModelSizes& model, i64 length);

/// Returns the side of a square of `patches` patches. Throws kUnsupported if they form no square.
i64 root_of(i64 patches);

}  // namespace shardtool::ops
