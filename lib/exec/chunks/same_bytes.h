#pragma once

#include <optional>
#include <vector>

#include "lib/exec/chunks/chunk_plan.h"

namespace shardtool::exec {

/// Bytes of a destination file that are those of a source file, in one stretch.
struct SameBytes {
  Slot from;
  Slot to;
  i64 bytes = 0;
};

/// Source position of a chunk's output if its bytes lie there in one stretch and are not changed.
std::optional<Slot> origin_of(const TensorMove& move, const Chunk& chunk, int output);

/// All bytes of the move's destinations as stretches of its sources, by destination holder and
/// offset; nullopt if some are changed, padding or come in pieces smaller than `least` on average.
std::optional<std::vector<SameBytes>> same_bytes(const TensorMove& move, i64 least);

}  // namespace shardtool::exec
