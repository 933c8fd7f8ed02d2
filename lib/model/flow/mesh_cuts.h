#pragma once

#include <vector>

#include "lib/model/flow/flow.h"

/// What mesh axes do to stored tensors; one entry per axis of the mesh.
namespace shardtool::model {

/// Which axes of more than one device cut axis d of the tensor.
std::vector<bool> cut_by(const mesh::Mesh& mesh, const layout::Layout& layout, size_t d);

/// Which axes deal out tensors, so that the devices of one differ along it from those of another.
std::vector<bool> dealt_by(const mesh::Mesh& mesh, const BoundWeight& tensors,
                           const LayoutOf& layouts);

/// The axes along which tokens are dealt out: those that deal out the experts of some layer and do
/// nothing else, neither to the experts' own axes nor to any other weight. A device along them has
/// all other weights, so that it can attend to tokens of its own.
mesh::Over token_axes(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh);

}  // namespace shardtool::model
