#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/resolve/assignment.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/companions.h"

namespace shardtool::mapping {

/// How many units of each logical axis its cuts must be multiples of, so that none falls inside a
/// block of a companion: the least common multiple over all companions. Axes without blocks are
/// absent. Only axes that rules name in "dims" count.
std::map<std::string, i64> block_alignment(std::span<const TensorSpec> tensors,
                                           const std::vector<Assignment>& assigned,
                                           const RuleMatcher& rules, const Companions& companions,
                                           const CompanionSizes& sizes, AxisTable& axes);

}  // namespace shardtool::mapping
