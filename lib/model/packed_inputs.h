#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "lib/model/bind.h"
#include "lib/model/packed_format.h"

namespace shardtool::model {

/// True for a recorded shape [out, in] that the codes of a weight can have: the last word of a row
/// may have codes beyond the inputs.
bool fits_codes(const Shape& said, const PackedWeight& weight);

/// Returns how many inputs the graph reads of packed weights, by their numbers in `weights`, if
/// they are others than those of their specs. Ops that lack tensors tell nothing, nor does a graph
/// that cannot be bound.
std::map<size_t, i64> other_inputs(const std::shared_ptr<const Graph>& graph,
                                   const mapping::ModelConfig& config,
                                   std::span<const TensorSpec> tensors,
                                   std::span<const PackedWeight> weights);

/// Leaves codes beyond the inputs that the graph reads out of the specs of weights with a recorded
/// shape, which readers of their codes compare. Does nothing without a graph, and for weights that
/// are not `chosen`.
void leave_out_padding(const std::shared_ptr<const Graph>& graph,
                       const mapping::ModelConfig& config, std::span<const TensorSpec> tensors,
                       std::span<PackedWeight> weights,
                       const std::function<bool(const PackedWeight&)>& chosen);

}  // namespace shardtool::model
