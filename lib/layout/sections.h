#pragma once

#include <vector>

#include "lib/layout/axis_expr.h"

namespace shardtool::layout {

/// Positions at which the sections of a Concat begin, also of one that is cut again, padded or
/// scaled; empty for an axis of one section.
std::vector<i64> section_begins(const AxisExpr& expr);

}  // namespace shardtool::layout
