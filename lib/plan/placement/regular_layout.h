#pragma once

#include <optional>

#include "lib/layout/layout.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::plan {

/// The placements that say the same as a layout: every cut axis in equal contiguous parts over
/// whole mesh axes, on every device. Nothing for a layout that is not so regular (fused sections,
/// uneven parts, sub-axes, padding, only some devices); its moves stay point to point. O(devices).
std::optional<Placements> placements_of(const layout::Layout& layout);

/// The layout that says the same as placements of Replicated and Sharded only (kInternal). Throws
/// kNotDivisible where they do not cut the shape evenly.
layout::Layout layout_of(const mesh::Mesh& mesh, const Shape& shape, const Placements& placements);

}  // namespace shardtool::plan
