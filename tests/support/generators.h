#pragma once

#include <rapidcheck.h>

#include <vector>

#include "lib/index/axis_map.h"
#include "lib/layout/axis_expr.h"
#include "lib/layout/layout.h"
#include "lib/mesh/mesh.h"
#include "tests/support/reference.h"

/// Generators of valid random values, which shrink towards small ones.
namespace shardtool::gen {

/// Uniform in [low, high], regardless of rapidcheck's size.
rc::Gen<i64> between(i64 low, i64 high);

/// Any map with these extents: some pieces in any order, gaps and padding between them.
rc::Gen<index::AxisMap> axis_map(i64 local_size, i64 global_size);
/// Any map with extents of at most 16.
rc::Gen<index::AxisMap> axis_map();

/// The numbers 0 to n - 1 in any order.
rc::Gen<std::vector<i64>> permutation(i64 n);

/// A mesh of 0 to 4 axes and at most 24 devices, a quarter of them with a device order.
rc::Gen<mesh::Mesh> mesh();

/// Disjoint pieces of the mesh's axes, whole or cut into sub-axes, in any order. Their product is
/// the mesh.
rc::Gen<mesh::Over> directions(const mesh::Mesh& mesh);

/// Any complete expression of all eight nodes over an axis of n that uses some of the given
/// directions.
rc::Gen<layout::AxisExpr> axis_expr(i64 n, const mesh::Mesh& mesh, const mesh::Over& directions);

/// A shape of 0 to 3 axes, small enough to visit every element.
rc::Gen<Shape> shape();

/// A layout of a tensor of this shape over any mesh; its axes share the mesh directions.
rc::Gen<layout::Layout> layout(const Shape& shape);

}  // namespace shardtool::gen
