#pragma once

#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/dims.h"
#include "lib/mapping/match/assignment.h"
#include "lib/mapping/match/packed_weights.h"
#include "lib/mapping/match/rule_matcher.h"

namespace shardtool::mapping {

/// Leaves codes beyond a weight, in the last word of an axis, out of the specs of packed weights,
/// which are the last ones of `tensors`. Cuts by rules with "dims" then count the same indices of a
/// logical axis in every tensor:
///
///     gate [mlp, embed]   mlp = 60, by its rows
///     down [embed, mlp]   8 words of 8 codes: 57 to 64, so 60
///
/// The declared sizes of a dim's axes decide. An axis without one has the size that other tensors
/// have it with, among several that of the weight's own module. An axis that no other tensor tells
/// fills all words. Throws kShapeMismatch if several extents fit; with `report` it receives the
/// error, and the weight fills its words.
void leave_out_last_codes(std::span<TensorSpec> tensors, std::span<const PackedSpec> packed,
                          const std::vector<Assignment>& assigned, const RuleMatcher& rules,
                          const DeclaredSize& declared, const ErrorSink& report);

}  // namespace shardtool::mapping
