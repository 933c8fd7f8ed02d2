#pragma once

#include <memory>

#include "lib/api/proof/bound_side.h"
#include "lib/mapping/document/config.h"
#include "lib/model/packed_format.h"

namespace shardtool::api {

/// Returns the layout of a packed weight as ops read it, from the layout of its codes.
std::shared_ptr<const layout::Layout> unpacked_layout(const model::PackedWeight& weight,
                                                      const layout::Layout& codes);

/// Appends the weights that the config declares packed after the stored tensors; each has the
/// layout of its codes, and the inputs that the graph reads. Words that are divided among devices
/// count as full. Throws the errors of model::packed_weights.
SideFiles with_unpacked_weights(SideFiles files, const std::shared_ptr<const model::Graph>& graph,
                                const mapping::ModelConfig& config);

}  // namespace shardtool::api
