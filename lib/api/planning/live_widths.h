#pragma once

#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/mapping/tensor_classes.h"
#include "lib/plan/activations.h"

namespace shardtool::api {

/// The widths of a layer's activations on every device, from the matrices that it has: of a matrix
/// with one side as wide as the residual stream, its other side. Layers, and experts, that are
/// alike count once; experts as often as one token visits some. All 0 when `hidden` is 0.
std::vector<plan::LiveWidths> live_widths(const AppliedMapping& applied, i64 hidden,
                                          i64 experts_per_token, mapping::TensorClasses& classes);

}  // namespace shardtool::api
