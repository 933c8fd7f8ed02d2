#pragma once

#include <string>
#include <vector>

#include "lib/layout/axis_expr.h"
#include "lib/layout/layout.h"

/// Contents of devices as text, so that tables of expected intervals read like the specification.
namespace shardtool::testing {

using Held = std::vector<std::string>;

/// Returns the intervals of one axis on every device of the mesh, e.g. {"[0, 4)", "[4, 7)"}.
inline Held held(const layout::AxisExpr& expr, const mesh::Mesh& mesh) {
  Held texts;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    texts.push_back(to_string(evaluate(expr, mesh, rank)));
  }
  return texts;
}

/// Returns the intervals of one stored axis of a tensor on every device.
inline Held held(const layout::Layout& layout, size_t axis) {
  Held texts;
  for (i64 rank = 0; rank < layout.mesh().size(); ++rank) {
    const auto region = layout.region(rank);
    texts.push_back(region ? to_string((*region)[axis]) : "not here");
  }
  return texts;
}

/// Returns the local extent of one axis on every device.
inline std::vector<i64> extents(const layout::AxisExpr& expr, const mesh::Mesh& mesh) {
  std::vector<i64> sizes;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    sizes.push_back(evaluate(expr, mesh, rank).local_size());
  }
  return sizes;
}

inline mesh::Mesh tp(i64 devices) {
  return mesh::Mesh({{"tp", devices}});
}
inline const mesh::Over kTp{{"tp", 1, 0}};

}  // namespace shardtool::testing
