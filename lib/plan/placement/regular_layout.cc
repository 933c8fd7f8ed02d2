#include "lib/plan/placement/regular_layout.h"

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

using layout::LayoutAxis;

/// Index of a mesh axis in its mesh.
int number_of(const mesh::Mesh& mesh, const std::string& name) {
  const auto axes = mesh.axes();
  const auto found = std::find_if(
      axes.begin(), axes.end(), [&name](const mesh::MeshAxis& axis) { return axis.name == name; });
  return static_cast<int>(found - axes.begin());
}

/// Every mesh axis over which the expression is cut, outer cuts first; nullopt for parts of axes
/// and for several sections cut over the same axis.
std::optional<mesh::Over> whole_axes(const layout::AxisExpr& expr) {
  mesh::Over over;
  for (const mesh::Over& list : layout::overs(expr)) {
    over.insert(over.end(), list.begin(), list.end());
  }
  std::set<std::string> names;
  const bool whole = std::all_of(over.begin(), over.end(), [&names](const mesh::AxisRef& ref) {
    return ref.whole() && names.insert(ref.axis).second;
  });
  return whole ? std::optional(over) : std::nullopt;
}

/// True if device `rank` has exactly part index_along(over) of equal contiguous parts of the axis.
bool is_equal_part(const layout::Layout& layout, size_t axis, const mesh::Over& over, i64 rank) {
  const i64 extent = layout.shape()[axis];
  const i64 count = mesh::extent(layout.mesh(), over);
  if (extent % count != 0) return false;
  const auto region = layout.region(rank);
  if (!region) return false;
  const i64 size = extent / count;
  const i64 begin = mesh::index_along(layout.mesh(), over, rank) * size;
  return (*region)[axis] == index::AxisMap::slice(extent, {begin, begin + size});
}

}  // namespace

std::optional<Placements> placements_of(const layout::Layout& layout) {
  const mesh::Mesh& mesh = layout.mesh();
  Placements placements = replicated(mesh, static_cast<int>(layout.shape().size()));
  for (size_t d = 0; d < layout.axes().size(); ++d) {
    const auto over = whole_axes(layout.axes()[d].expr);
    if (!over) return std::nullopt;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      if (!is_equal_part(layout, d, *over, rank)) return std::nullopt;
    }
    for (const mesh::AxisRef& ref : *over) {
      const int a = number_of(mesh, ref.axis);
      placements.on[static_cast<size_t>(a)] = Placement::sharded(static_cast<int>(d));
      placements.order[d].push_back(a);
    }
  }
  if (std::ssize(layout.ranks()) != mesh.size()) return std::nullopt;
  return placements;
}

layout::Layout layout_of(const mesh::Mesh& mesh, const Shape& shape, const Placements& placements) {
  for (const Placement& on : placements.on) {
    const bool at_rest = on.is(Placement::Kind::kReplicated) || on.is(Placement::Kind::kSharded);
    if (!at_rest) throw Error(ErrorCode::kInternal, "only R and S placements are layouts");
  }
  std::vector<LayoutAxis> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    mesh::Over over;
    for (const int a : placements.order[d])
      over.push_back({mesh.axes()[static_cast<size_t>(a)].name});
    LayoutAxis axis{.expr = layout::whole(shape[d]), .logical = {}};
    if (!over.empty()) axis.expr = layout::split(shape[d], std::move(over), layout::kExact);
    axes.push_back(std::move(axis));
  }
  return layout::Layout(mesh, shape, std::move(axes));
}

}  // namespace shardtool::plan
