#pragma once

#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/resolve/assignment.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/rule_matcher.h"

namespace shardtool::mapping {

/// Names the tensor that an error is about, with its rule and how many others have the same one;
/// adds the rule's place where the error has none.
Error& blame(Error& e, size_t tensor, std::span<const TensorSpec> tensors,
             const std::vector<Assignment>& assigned, const RuleMatcher& rules);

/// "name [shape] dtype".
std::string describe(const TensorSpec& tensor);

/// Throws kAssertion where a rule's "dtype" or "count" does not hold for the tensors that it
/// decides. A rule that matches nothing asserts nothing.
void check_assertions(std::span<const TensorSpec> tensors, const std::vector<Assignment>& assigned,
                      const RuleMatcher& rules, AxisTable& axes);

}  // namespace shardtool::mapping
