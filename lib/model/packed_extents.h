#pragma once

#include <span>

#include "lib/base/tensor_spec.h"
#include "lib/model/packed_format.h"

namespace shardtool::model {

/// Checks that every part of a packed weight has the extents that its codes require:
///
///     inputs in rows                  inputs in columns
///     scales [groups, out]            scales [.., out, groups], or one number
///     zeros  [groups, out / word]     zeros  [out / word, groups]
///
/// `groups` must have one number per input, `shape` two numbers, `divisor` and `factor` one. Throws
/// kShapeMismatch with the part.
void require_extents(const PackedWeight& weight, std::span<const TensorSpec> tensors);

/// Returns the number of groups of a weight's inputs by the extents of its scales. Throws
/// kShapeMismatch if the scales do not fit the codes.
i64 groups_of_inputs(const PackedWeight& weight, std::span<const TensorSpec> tensors);
/// Returns the number of inputs of a weight.
i64 inputs_of(const PackedWeight& weight);

/// Returns the inputs per group of a whole weight with `inputs` inputs and `groups` groups in its
/// `scales`. A cut may have split groups into equal parts. Throws kUnsupported if they do not fit.
i64 inputs_per_group(const PackedWeight& weight, const TensorSpec& scales, i64 inputs, i64 groups);

}  // namespace shardtool::model
