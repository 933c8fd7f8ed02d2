#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/index/holder_set.h"
#include "lib/mesh/mesh.h"

namespace shardtool::layout {

/// Placements of a DTensor (torch.distributed.tensor 2.13), one per mesh axis: the tensor axis that
/// Shard(axis) cuts, or nullopt for Replicate().
using TorchPlacements = std::vector<std::optional<int>>;

/// Placements whose local tensors are exactly the holders' parts: mesh axes cut in their order,
/// each as torch.chunk does. `ranks` are those of the holders. Throws kUnsupported with the first
/// rank that differs if there are none: stacked or uneven cuts, padding, replicas over a part of a
/// mesh axis, and tensors that some ranks do not hold.
TorchPlacements torch_placements(const mesh::Mesh& mesh, const index::HolderSet& holders,
                                 std::span<const i64> ranks);

}  // namespace shardtool::layout
