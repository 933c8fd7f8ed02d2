#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/match/companions.h"

namespace shardtool::mapping {

/// A packed weight by its words. The last word of an axis may have codes beyond the weight.
struct PackedSpec {
  TensorSpec spec;  ///< with the extents that fill all words
  Shape least;      ///< extents with one code in the last word
};

/// Returns weights that a checkpoint stores only as members of their bundle: GPTQ stores
/// q_proj.weight as q_proj.{qweight, qzeros, scales, g_idx}. Rules cut the weight under its own
/// name and logical shape. Members with "leads" define that shape, and every member follows the
/// cut.
///
/// The dtype is that of the first leading member. Throws kShapeMismatch if the leading members of a
/// weight disagree or do not define every extent. If `report` is set, it receives the error
/// instead, and the weight is skipped.
std::vector<PackedSpec> packed_weights(std::span<const TensorSpec> tensors, Companions& companions,
                                       const CompanionSizes& sizes,
                                       const std::function<void(Error)>& report);

}  // namespace shardtool::mapping
