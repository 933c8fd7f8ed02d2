#pragma once

#include <optional>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::layout {

/// One axis of a bundle member: the logical axis of the bundle that it follows (nullopt: whole on
/// every device), and the logical indices per stored index.
struct MemberAxis {
  std::optional<size_t> follows;
  i64 granularity = 1;
  /// True if a stored index holds a value of each of its logical indices, as a word of codes does.
  /// A device with a part of it would then have values of others, and a smaller block would be a
  /// part of its bytes instead of a copy.
  bool is_packed = false;
};

/// Tensor that shares logical axes with the leading tensor of its bundle: block scales, zero
/// points, a bias, g_idx. Its cut always follows the leader's.
struct BundleMember {
  Shape shape;
  std::vector<MemberAxis> axes;
};

/// Layout of a member: each axis is coarsen(the leader's expression, granularity), on the same
/// devices as the leader. `straddling` decides about a cut of the leader inside a member's block;
/// kRefuse throws kBlockStraddle, as any does on a packed axis. Throws kShapeMismatch when a stored
/// extent differs.
Layout member_layout(const Layout& leader, const BundleMember& member,
                     Straddling straddling = Straddling::kRefuse);

/// One scale per block of `block` elements: one granularity per axis of the leader.
BundleMember block_scale(const Shape& shape, const std::vector<i64>& block);
/// One value per index of one axis of the leader, stored as [n] or [n, 1] ([1, n] for the last
/// axis).
BundleMember per_index(const Shape& shape, size_t leader_axis);
/// Values that belong to the whole tensor.
BundleMember per_tensor(const Shape& shape);
/// Same axes as the leader.
BundleMember same_axes(const Shape& shape);

}  // namespace shardtool::layout
