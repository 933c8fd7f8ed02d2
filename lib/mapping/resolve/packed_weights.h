#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/resolve/companions.h"

namespace shardtool::mapping {

/// The weights that a checkpoint stores only as members of their bundle: GPTQ keeps q_proj.weight
/// as q_proj.{qweight, qzeros, scales, g_idx}. Rules cut the weight under its own name and logical
/// shape; the members that "lead" say what that shape is, and every member follows the cut.
///
/// The dtype is that of the first leading member. Throws kShapeMismatch when the leading members of
/// one weight do not agree, or leave an axis unsaid; with `report`, hands it over and goes on.
std::vector<TensorSpec> packed_weights(std::span<const TensorSpec> tensors, Companions& companions,
                                       const CompanionSizes& sizes,
                                       const std::function<void(Error)>& report);

}  // namespace shardtool::mapping
