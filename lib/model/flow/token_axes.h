#pragma once

#include "lib/model/flow/flow.h"

namespace shardtool::model {

/// Returns the axes along which tokens are distributed: those that distribute the experts of some
/// layer and cut neither the experts' own axes nor any other weight. A device along them has all
/// other weights, so that it can attend to tokens of its own.
mesh::Over token_axes(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh);

}  // namespace shardtool::model
