#pragma once

#include <optional>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::layout {

/// One axis of a bundle member: the axis of the leading tensor whose cut it follows (nullopt: whole
/// on every device), and the number of that axis' indices per stored index.
struct MemberAxis {
  std::optional<size_t> follows;
  i64 granularity = 1;
  /// True if a stored index holds one value for each of its logical indices, such as a word of
  /// codes. It can then be neither shared by devices (they would get values of other devices) nor
  /// refined into smaller blocks (these would need a part of its bytes, not a copy).
  bool is_packed = false;
};

/// Tensor that follows the cut of the leading tensor of its bundle: block scales, zero points, a
/// bias, g_idx.
struct BundleMember {
  Shape shape;
  std::vector<MemberAxis> axes;
};

/// Returns the layout of a member, on the same devices as the leader. Each axis that follows one is
/// coarsen(the leader's expression, granularity). If a cut of the leader falls inside a block of
/// the member, `straddling` decides; kRefuse throws kBlockStraddle, and so do the others on a
/// packed axis. Throws kShapeMismatch if a stored extent differs or the leader lacks an axis that
/// is followed, and kLimit if a block overflows.
Layout member_layout(const Layout& leader, const BundleMember& member,
                     Straddling straddling = Straddling::kRefuse);

// Members by their stored `shape`.

/// One scale per block; `block` has the extent of a block along each axis of the leader. Throws
/// kShapeMismatch unless the shape has as many axes.
BundleMember block_scale(const Shape& shape, const std::vector<i64>& block);
/// One value per index of one axis of the leader, which the longest stored axis follows: [n],
/// [n, 1] or [1, n].
BundleMember per_index(const Shape& shape, size_t leader_axis);
/// Values that belong to the whole tensor.
BundleMember per_tensor(const Shape& shape);
/// Same axes as the leader.
BundleMember same_axes(const Shape& shape);

}  // namespace shardtool::layout
