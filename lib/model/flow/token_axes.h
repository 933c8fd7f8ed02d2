#pragma once

#include "lib/model/flow/flow.h"

namespace shardtool::model {

/// Returns the mesh axes along which tokens are distributed: those that distribute the experts of
/// some layer and cut nothing else. Devices along them have all other weights, so each can run
/// attention for its own tokens.
mesh::Over token_axes(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh);

}  // namespace shardtool::model
