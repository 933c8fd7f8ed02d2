#pragma once

#include <string>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::layout {

/// Returns the expression with these mesh axes left out of every cut: parts along them are joined,
/// and the others are cut by the same rules. Throws kUnsupported for a list of cuts or owners over
/// several mesh axes of which only some are left out.
AxisExpr gathered(const AxisExpr& expr, const std::vector<std::string>& axes);

/// True if the layout cuts an axis, or spreads numbers of names, along this mesh axis.
bool is_cut_along(const Layout& layout, const std::string& axis);

/// Returns those of the mesh axes along which the layout has replicas.
mesh::Over replica_axes(const Layout& layout, const mesh::Over& over);

/// Returns the layout after a gather along these mesh axes: devices along them are replicas. Throws
/// kUnsupported.
Layout gathered(const Layout& layout, const std::vector<std::string>& axes);

}  // namespace shardtool::layout
