#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/match/assignment.h"
#include "lib/mapping/match/companions.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// Returns, by logical axis, the number of units that must stay together so that no cut falls
/// inside a companion's block: the least common multiple over all companions. Has no entry for axes
/// without blocks. Considers only axes in the "dims" of rules.
std::map<std::string, i64> block_alignment(std::span<const TensorSpec> tensors,
                                           const std::vector<Assignment>& assigned,
                                           const RuleMatcher& rules, const Companions& companions,
                                           const CompanionSizes& sizes, AxisTable& axes);

}  // namespace shardtool::mapping
