#pragma once

#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/match/assignment.h"
#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// Adds to an error the tensor, its rule, and the number of further tensors with the same error;
/// adds the rule's place if the error has none.
Error& blame(Error& e, size_t tensor, std::span<const TensorSpec> tensors,
             const std::vector<Assignment>& assigned, const RuleMatcher& rules);

/// "name [shape] dtype".
std::string describe(const TensorSpec& tensor);

/// Throws kAssertion if a rule's "dtype" or "count" does not hold for the tensors that the rule
/// decides. A rule without tensors is not checked.
void check_assertions(std::span<const TensorSpec> tensors, const std::vector<Assignment>& assigned,
                      const RuleMatcher& rules, AxisTable& axes);

}  // namespace shardtool::mapping
