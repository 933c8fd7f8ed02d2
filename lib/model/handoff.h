#pragma once

#include <optional>
#include <span>

#include "shardtool/model/flow.h"

namespace shardtool::model {

/// The devices that run a layer: those that have its first weight, ascending; none for a layer
/// without weights.
std::span<const i64> devices_of(const Layer& layer, const LayoutOf& layouts);

/// What one stage of a pipeline sends to the next: `width` features from the devices of one layer
/// to those of the layer after it, by every device that has them. Nothing where a device has both.
std::optional<Exchange> handoff(const Layer& from, const Layer& to, const LayoutOf& layouts,
                                const mesh::Mesh& mesh, i64 width);

}  // namespace shardtool::model
