#pragma once

#include <optional>

#include "lib/layout/layout.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::plan {

/// Placements equivalent to a layout: every cut axis in equal contiguous parts over whole mesh
/// axes, on every device. Nullopt for less regular layouts (fused sections, uneven parts, sub-axes,
/// padding, only some devices); their moves stay point to point. O(devices).
std::optional<Placements> placements_of(const layout::Layout& layout);

/// Layout equivalent to placements of Replicated and Sharded only (kInternal). Throws kNotDivisible
/// if they do not cut the shape evenly.
layout::Layout layout_of(const mesh::Mesh& mesh, const Shape& shape, const Placements& placements);

}  // namespace shardtool::plan
