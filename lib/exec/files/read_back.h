#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Bytes of a file and their hash when they were written.
struct WrittenRange {
  int file = 0;
  i64 offset = 0;
  i64 bytes = 0;
  kernels::Hash128 xxh3;
};

/// Reads every range of the files again, several at a time within max_memory, and returns for each
/// whether it still has its hash. Throws what reading throws, and kInterrupted once interrupted.
std::vector<bool> read_back(std::span<const WrittenRange> ranges, std::span<const SourceFile> files,
                            const Resources& resources);

}  // namespace shardtool::exec
