#pragma once

#include <span>
#include <vector>

#include "lib/model/flow/flow.h"

namespace shardtool::model {

/// The devices that run a layer, ascending: those of the weight that fewest devices have, as others
/// may be there for other layers, too. What is dealt out (experts, heads with tensors of their own)
/// and biases do not count. A layer without weights is run by those of the one before it. `layer`
/// counts the model's layers.
std::span<const i64> devices_of(const Model& model, size_t layer, const LayoutOf& layouts);

/// What one stage of a pipeline sends to the next: all that layer `from` passes, to the devices of
/// the layer after it; every device sends what it has to the one that differs from it only along
/// `over`. Nothing where a device has both layers.
std::vector<ValueMove> handoffs(const Model& model, size_t from, const LayoutOf& layouts,
                                const mesh::Mesh& mesh, const Stream& passed);

}  // namespace shardtool::model
