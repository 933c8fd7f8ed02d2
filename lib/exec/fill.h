#pragma once

#include <span>

#include "lib/exec/files/data_file.h"
#include "lib/exec/move.h"

namespace shardtool::exec {

/// Fills padding that was written as zeros with copies of elements. The destinations of each move
/// have the extents of a shard; bytes without an image stay unchanged. Holds the rows of one box in
/// memory at a time: throws kLimit above kMaxFilledBytes, and the errors of reading and writing.
/// Throws kUnsupported for elements of less than a byte.
void fill(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
          std::span<const TargetFile> targets);

inline constexpr i64 kMaxFilledBytes = 64 << 20;

}  // namespace shardtool::exec
