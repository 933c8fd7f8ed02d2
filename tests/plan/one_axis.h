#pragma once

#include <vector>

#include "lib/layout/layout.h"
#include "lib/plan/holders.h"

/// Small layouts by name, for tables of known values.
namespace shardtool::plan {

inline Holders holders_of(const layout::Layout& layout) {
  return {&layout.holders(), layout.ranks()};
}

/// The shape over tp=n, cut along one axis.
inline layout::Layout cut(const Shape& shape, i64 n, size_t axis = 0,
                          layout::SplitRule rule = layout::kBalanced) {
  std::vector<layout::LayoutAxis> axes;
  for (size_t a = 0; a < shape.size(); ++a) {
    axes.push_back(
        {a == axis ? layout::split(shape[a], {{"tp"}}, rule) : layout::whole(shape[a]), 1, {}});
  }
  return layout::Layout(mesh::Mesh({{"tp", n}}), shape, axes);
}

inline layout::Layout whole_on(const Shape& shape, i64 n) {
  return layout::Layout::replicated(mesh::Mesh({{"tp", n}}), shape);
}

}  // namespace shardtool::plan
