#pragma once

#include <string>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::layout {

/// Returns the expression after a gather along these mesh axes: no cut uses them, and cuts over
/// other axes keep their rules. Throws kUnsupported for explicit cuts or owners over several mesh
/// axes if only some of them are gathered.
AxisExpr gathered(const AxisExpr& expr, const std::vector<std::string>& axes);

/// True if the layout cuts a tensor axis along this mesh axis, or distributes tensors over it by
/// the numbers in their names.
bool is_cut_along(const Layout& layout, const std::string& axis);

/// Returns the axes of `over` along which all devices hold equal data.
mesh::Over replica_axes(const Layout& layout, const mesh::Over& over);

/// Returns the layout after a gather along these mesh axes, along which devices are then replicas.
/// Throws kUnsupported like the function above.
Layout gathered(const Layout& layout, const std::vector<std::string>& axes);

}  // namespace shardtool::layout
