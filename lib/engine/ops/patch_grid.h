#pragma once

#include <algorithm>
#include <vector>

#include "lib/engine/side.h"
#include "lib/model/bind.h"

namespace shardtool::engine {

/// Where the patches of an image are in it, when a sequence's positions are patches: in a grid as
/// wide as the widest square of squares that they fill, and at least one square wide.
class PatchGrid {
 public:
  /// Of squares of side * side patches. Requires 1 <= length, 1 <= side.
  PatchGrid(model::Patches::Order order, i64 side, i64 length);

  struct Place {
    i64 row, column;
  };
  Place place(i64 patch) const;
  /// The patches of a square, row by row; after the last of all patches the first ones come again.
  std::vector<i64> square(i64 number) const;
  /// How many positions squares take: at least one.
  i64 squares() const { return std::max<i64>(1, length_ / (side_ * side_)); }
  i64 width() const { return width_; }

 private:
  Place corner(i64 square) const;

  model::Patches::Order order_;
  i64 side_, length_, width_;
};

/// Throws what root_of throws.
PatchGrid grid_of(const model::Patches& patches, const model::Model& model, i64 length);

/// How many of a square's patches are side by side. Throws kUnsupported where they make no square.
i64 root_of(i64 patches);

}  // namespace shardtool::engine
