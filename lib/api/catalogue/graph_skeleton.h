#pragma once

#include <string>

namespace shardtool::api {

/// Writes a graph for a model that no built-in graph knows: a decoder of pre-norm layers whose
/// tensors are recognised by names and shapes. What tensors do not tell (kind of norm, activation,
/// rotation of positions, order inside fused tensors) is assumed, and "description" lists it and
/// the tensors that no op reads.
/// Throws kUnsupported with what is missing if the checkpoint is no such model.
std::string graph_skeleton(const std::string& source);

}  // namespace shardtool::api
