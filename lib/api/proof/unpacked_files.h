#pragma once

#include <memory>

#include "lib/api/proof/bound_side.h"
#include "lib/mapping/document/config.h"
#include "lib/model/packed_format.h"

namespace shardtool::api {

/// Leaves codes beyond a weight [out, in] out of its spec if the cut of its codes counts the
/// others: the last word may have more.
void leave_out_uncut_codes(model::PackedWeight& weight, const layout::Layout& codes);

/// Returns the layout of a packed weight as ops read it, from the layout of its codes.
std::shared_ptr<const layout::Layout> unpacked_layout(const model::PackedWeight& weight,
                                                      const layout::Layout& codes);

/// Appends the weights that the config declares packed after the stored tensors; each has the
/// layout of its codes, and the extents that its cut counts, or the inputs that the graph reads.
/// Throws the errors of model::packed_weights.
SideFiles with_unpacked_weights(SideFiles files, const std::shared_ptr<const model::Graph>& graph,
                                const mapping::ModelConfig& config);

}  // namespace shardtool::api
