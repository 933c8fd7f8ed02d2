#pragma once

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Joins stored tensors that are parts of one (StoredTensor::part) to Checkpoint::chunked, which
/// then has all tensors. Without parts it does nothing. Throws kMalformed, naming the tensor, for
/// parts that contradict each other, leave the tensor or do not cover it.
void group_chunks(Checkpoint& checkpoint);

}  // namespace shardtool::format
