#pragma once

#include <vector>

#include "lib/ops/placed_value.h"

/// The effect of mesh axes on stored tensors. Results have one entry per axis of the mesh.
namespace shardtool::ops {

/// The mesh axes of size above 1 that cut an axis.
std::vector<bool> cut_by(const mesh::Mesh& mesh, const layout::AxisExpr& expr);
/// The mesh axes of size above 1 that cut axis d of the tensor.
std::vector<bool> cut_by(const mesh::Mesh& mesh, const layout::Layout& layout, size_t d);

/// The mesh axes along which some device has no part of the tensor.
std::vector<bool> absent_along(const mesh::Mesh& mesh, const layout::Layout& layout);

/// The mesh axes that distribute tensors (experts): devices along them have different tensors.
std::vector<bool> dealt_by(const mesh::Mesh& mesh, const BoundWeight& tensors,
                           const LayoutOf& layouts);

/// The placement of a weight per mesh axis, as in rules.h: a list of tensors has its own axis 0. A
/// tensor that some devices lack (pipeline stages) counts as whole.
std::vector<plan::Placement> placement_of(const mesh::Mesh& mesh, const BoundWeight& weight,
                                          const LayoutOf& layouts);

}  // namespace shardtool::ops
