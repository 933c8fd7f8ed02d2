#pragma once

#include <cstddef>
#include <span>

#include "lib/exec/chunks/chunk_plan.h"
#include "lib/exec/chunks/computed.h"
#include "lib/exec/move.h"

namespace shardtool::exec {

/// Computes the needed elements of a chunk's input into its memory, row-major; the other bytes of
/// the memory stay as they are. Requires move.computed.
ComputedReport compute_input(const TensorMove& move, const Chunk& chunk, int input,
                             std::byte* memory, std::span<const SourceFile> files);

}  // namespace shardtool::exec
