#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Shows the floats of a checkpoint in another type: every tensor that kernels::is_castable takes
/// gets the dtype `to` and remembers the stored one (LogicalTensor::cast_from). Other tensors stay.
/// Throws kUnsupported for a quantised checkpoint, by its config.json or by the names of its
/// tensors: its weights are no values without their scales, and scales must not be rounded.
void cast_values(LogicalCheckpoint& checkpoint, Dtype to);

}  // namespace shardtool::api
