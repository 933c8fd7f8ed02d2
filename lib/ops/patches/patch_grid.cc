#include "lib/ops/patches/patch_grid.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::ops {
namespace {

using Order = Patches::Order;

i64 width_of(i64 side, i64 length) {
  i64 width = side;
  while ((width + side) * (width + side) <= length) width += side;
  return width;
}

}  // namespace

PatchGrid::PatchGrid(Order order, i64 side, i64 length)
    : order_(order), side_(side), length_(length), width_(width_of(side, length)) {}

/// Squares are in rows of the grid, like patches.
PatchGrid::Place PatchGrid::corner(i64 square) const {
  const i64 across = width_ / side_;
  return {square / across * side_, square % across * side_};
}

PatchGrid::Place PatchGrid::place(i64 patch) const {
  if (order_ == Order::kRows) return {patch / width_, patch % width_};
  const i64 of_square = side_ * side_;
  const Place at = corner(patch / of_square);
  const i64 inner = patch % of_square;
  return {at.row + inner / side_, at.column + inner % side_};
}

std::vector<i64> PatchGrid::square(i64 number) const {
  const i64 of_square = side_ * side_;
  const Place at = corner(number);
  std::vector<i64> patches;
  for (i64 i = 0; i < of_square; ++i) {
    const bool is_row = order_ == Order::kRows;
    const i64 patch =
        is_row ? (at.row + i / side_) * width_ + at.column + i % side_ : number * of_square + i;
    patches.push_back(patch % length_);
  }
  return patches;
}

PatchGrid grid_of(const Patches& patches, const ModelSizes& model, i64 length) {
  const i64 others = patches.has_class && length > 1 ? 1 : 0;
  return {patches.order, root_of(model.size(patches.count)), length - others};
}

i64 root_of(i64 patches) {
  i64 side = 1;
  while (side * side < patches) ++side;
  if (side * side == patches) return side;
  throw Error(ErrorCode::kUnsupported, fmt::format("{} patches make no square", patches));
}

}  // namespace shardtool::ops
