#include "lib/ops/mesh_cuts.h"

#include <algorithm>
#include <unordered_set>

namespace shardtool::ops {
namespace {

using layout::Layout;

/// For each mesh axis, the indices along it of some set of devices.
using Indices = std::vector<std::vector<bool>>;

Indices no_indices(const mesh::Mesh& mesh) {
  Indices indices;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    indices.emplace_back(static_cast<size_t>(axis.size));
  }
  return indices;
}

void add_indices(const mesh::Mesh& mesh, std::span<const i64> ranks, Indices& indices) {
  for (const i64 rank : ranks) {
    const mesh::Coordinate coordinate = mesh.coordinate(rank);
    for (size_t a = 0; a < indices.size(); ++a)
      indices[a][static_cast<size_t>(coordinate[a])] = true;
  }
}

i64 count(const std::vector<bool>& indices) {
  return std::count(indices.begin(), indices.end(), true);
}

}  // namespace

std::vector<bool> cut_by(const mesh::Mesh& mesh, const layout::AxisExpr& expr) {
  std::vector<bool> cut(mesh.axes().size());
  for (const mesh::AxisRef& ref : layout::axes_used(expr)) {
    for (size_t a = 0; a < cut.size(); ++a) {
      if (mesh.axes()[a].name == ref.axis && mesh.axes()[a].size > 1) cut[a] = true;
    }
  }
  return cut;
}

std::vector<bool> cut_by(const mesh::Mesh& mesh, const Layout& layout, size_t d) {
  return cut_by(mesh, layout.axes()[d].expr);
}

std::vector<bool> absent_along(const mesh::Mesh& mesh, const Layout& layout) {
  Indices indices = no_indices(mesh);
  add_indices(mesh, layout.ranks(), indices);
  std::vector<bool> absent;
  for (const auto& along : indices) absent.push_back(count(along) < std::ssize(along));
  return absent;
}

std::vector<bool> dealt_by(const mesh::Mesh& mesh, const BoundWeight& tensors,
                           const LayoutOf& layouts) {
  Indices first = no_indices(mesh);
  add_indices(mesh, layouts(tensors.front()).ranks(), first);
  Indices all = first;
  std::unordered_set<const Layout*> seen;
  for (const size_t tensor : tensors) {
    const Layout& layout = layouts(tensor);
    if (seen.insert(&layout).second) add_indices(mesh, layout.ranks(), all);
  }
  std::vector<bool> dealt;
  for (size_t a = 0; a < all.size(); ++a) dealt.push_back(count(all[a]) > count(first[a]));
  return dealt;
}

std::vector<plan::Placement> placement_of(const mesh::Mesh& mesh, const BoundWeight& weight,
                                          const LayoutOf& layouts) {
  std::vector<plan::Placement> on(mesh.axes().size());
  if (weight.empty()) return on;
  const bool is_list = weight.size() > 1;
  const Layout& first = layouts(weight.front());
  for (size_t d = 0; d < first.axes().size(); ++d) {
    const auto cut = cut_by(mesh, first, d);
    for (size_t a = 0; a < on.size(); ++a) {
      if (cut[a]) on[a] = plan::Placement::sharded(static_cast<int>(d + (is_list ? 1 : 0)));
    }
  }
  if (!is_list) return on;
  const auto dealt = dealt_by(mesh, weight, layouts);
  for (size_t a = 0; a < on.size(); ++a) {
    if (dealt[a]) on[a] = plan::Placement::sharded(0);
  }
  return on;
}

}  // namespace shardtool::ops
