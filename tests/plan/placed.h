#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/index/join.h"
#include "lib/layout/layout.h"
#include "lib/plan/placement/redistribute.h"

/// Helpers for tensors placed on a mesh.
namespace shardtool::plan {

/// A shape that every placement on the mesh cuts evenly.
inline Shape even_shape(const mesh::Mesh& mesh, int rank) {
  return Shape(static_cast<size_t>(rank), mesh.size());
}

/// Formats as "all_gather x, y of axis 0".
inline std::string to_string(const RedistributionStep& step, const mesh::Mesh& mesh) {
  std::vector<std::string_view> names;
  for (const int a : step.mesh_axes) names.push_back(mesh.axes()[static_cast<size_t>(a)].name);
  std::string text = fmt::format("{} {}", to_string(step.move), fmt::join(names, ", "));
  if (step.from_axis >= 0) text += fmt::format(" of axis {}", step.from_axis);
  if (step.to_axis >= 0) text += fmt::format(" to axis {}", step.to_axis);
  return text;
}

/// Layout equivalent to placements of Replicated and Sharded only.
inline layout::Layout layout_of(const mesh::Mesh& mesh, const Shape& shape,
                                const Placements& placements) {
  std::vector<layout::LayoutAxis> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    mesh::Over over;
    for (const int a : placements.order[d])
      over.push_back({mesh.axes()[static_cast<size_t>(a)].name});
    layout::LayoutAxis axis{.expr = layout::whole(shape[d]), .logical = {}};
    if (!over.empty()) axis.expr = layout::split(shape[d], std::move(over), layout::kExact);
    axes.push_back(std::move(axis));
  }
  return layout::Layout(mesh, shape, std::move(axes));
}

/// Elements of their new parts that devices lack, from the join of the two layouts.
inline i64 elements_lacking(const layout::Layout& from, const layout::Layout& to) {
  const index::HolderJoin join(from.holders(), to.holders());
  i64 lacking = 0;
  join.for_each_box([&](index::HolderJoin::Box box) {
    const i64 volume = index::elements(box);
    const auto have = join.source_of(box).holders;
    for (const auto& wanted : join.destinations_of(box)) {
      for (const int device : wanted.holders) {
        lacking += std::find(have.begin(), have.end(), device) == have.end() ? volume : 0;
      }
    }
  });
  return lacking;
}

/// Placements from the mesh axes of each tensor axis, major to minor.
inline Placements cut(const mesh::Mesh& mesh, std::vector<std::vector<int>> order) {
  Placements placements = replicated(mesh, static_cast<int>(order.size()));
  for (size_t d = 0; d < order.size(); ++d) {
    for (const int a : order[d]) {
      placements.on[static_cast<size_t>(a)] = Placement::sharded(static_cast<int>(d));
    }
  }
  placements.order = std::move(order);
  return placements;
}

}  // namespace shardtool::plan
