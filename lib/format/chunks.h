#pragma once

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Joins stored tensors that are parts of one (StoredTensor::part) to Checkpoint::chunked, which
/// then has all tensors. Without parts it does nothing. Reports kChunksInvalid for parts that
/// contradict each other or leave the tensor, kChunksIncomplete for parts that do not cover it
/// although all files were read, and leaves the tensor out. Warns of parts that overlap without
/// being replicas: writing compares them.
void group_chunks(Checkpoint& checkpoint, const ProblemSink& report);

}  // namespace shardtool::format
