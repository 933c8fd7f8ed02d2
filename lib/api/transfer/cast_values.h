#pragma once

#include <optional>
#include <string_view>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Returns the type to which floats can be cast under this name: "bf16", "f16" or "fp16",
/// "f32" or "fp32"; nullopt for another name.
std::optional<Dtype> cast_type(std::string_view name);

/// Shows the floats of a checkpoint in another type: every tensor that kernels::is_castable takes
/// gets the dtype `to` and remembers the stored one (LogicalTensor::cast_from). Other tensors stay.
/// Throws kUnsupported for a quantised checkpoint, by its config.json or by the names of its
/// tensors: its weights are no values without their scales, and scales must not be rounded.
void cast_values(LogicalCheckpoint& checkpoint, Dtype to);

}  // namespace shardtool::api
