#pragma once

#include <optional>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::layout {

/// One axis of a bundle member: which logical axis of the bundle it follows, and how many logical
/// indices one stored index stands for. Nothing: the axis is whole on every device.
struct MemberAxis {
  std::optional<size_t> follows;
  i64 granularity = 1;
};

/// A tensor that shares logical axes with the tensor that leads its bundle: block scales, zero
/// points, a bias, g_idx. Its cut is never decided by itself.
struct BundleMember {
  Shape shape;
  std::vector<MemberAxis> axes;
};

/// The layout of a member: each axis is coarsen(the leader's expression, granularity), on the same
/// devices as the leader. Where a cut of the leader falls inside a member's block, `straddling`
/// decides; kRefuse throws kBlockStraddle. Throws kShapeMismatch when a stored extent differs.
Layout member_layout(const Layout& leader, const BundleMember& member,
                     Straddling straddling = Straddling::kRefuse);

/// A scale per block of `block` elements: one granularity per axis of the leader.
BundleMember block_scale(const Shape& shape, const std::vector<i64>& block);
/// A value per index of one axis of the leader, stored as [n] or [n, 1] ([1, n] for the last axis).
BundleMember per_index(const Shape& shape, size_t leader_axis);
/// Values that belong to the whole tensor.
BundleMember per_tensor(const Shape& shape);
/// The leader's own axes.
BundleMember same_axes(const Shape& shape);

}  // namespace shardtool::layout
