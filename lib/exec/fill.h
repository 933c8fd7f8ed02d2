#pragma once

#include <span>

#include "lib/exec/data_file.h"
#include "lib/exec/move.h"

namespace shardtool::exec {

/// Puts copies of elements into padding that was written as zeros. The destinations of each move
/// have the extents of a shard; where they have no image, what is there already stays. The rows
/// of one box are in memory at a time: throws kLimit where they are above kMaxFilledBytes, else
/// what reading and writing throw. Not for elements of less than a byte (kUnsupported).
void fill(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
          std::span<const TargetFile> targets);

inline constexpr i64 kMaxFilledBytes = 64 << 20;

}  // namespace shardtool::exec
