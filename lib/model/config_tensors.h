#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// Returns the tensors that the graph requires of a model with this config.json, all of type
/// `dtype`, in the order of the ops. Of several names or forms of a weight these are the first, and
/// of a shared weight the one that an earlier op reads. An output matrix of its own is among them
/// if config.json says that it is not tied. Leaves out weights that a model may lack, such as
/// optional biases, and tensors that no op reads.
///
/// Throws kUnsupported where config.json does not say which weights a layer has, kLimit for more
/// tensors than any model has, kShapeMismatch for sizes above 2^63, and the errors of sizes_of.
std::vector<TensorSpec> config_tensors(const Graph& graph, const mapping::ModelConfig& config,
                                       Dtype dtype);

/// Returns the shapes that the graph gives by config.json to the tensors of these names, optional
/// ones too: one per name, nullopt for a tensor that no op reads, for one number, and if
/// config.json lacks a size. Throws the errors of bind_model with Misfits::kLeaveOut.
std::vector<std::optional<Shape>> config_shapes(const std::shared_ptr<const Graph>& graph,
                                                const mapping::ModelConfig& config,
                                                std::span<const std::string> names);

}  // namespace shardtool::model
