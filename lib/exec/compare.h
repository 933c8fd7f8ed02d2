#pragma once

#include <span>
#include <vector>

#include "lib/exec/stream.h"

namespace shardtool::exec {

/// How a tensor's destinations differ from its sources.
struct Difference {
  i64 bytes = 0;    ///< that differ, over all destinations
  i64 first = -1;   ///< byte offset in the whole tensor of the first one, -1 when equal
  int holder = -1;  ///< the destination holder that has it
};

/// Reads every tensor from its sources as its destinations hold it, and compares with the bytes
/// that are already there in `others`, element for element; padding is not looked at. The same move
/// that would write a layout proves that it was written right; with a tensor's holders on both
/// sides it proves that replicas agree.
std::vector<Difference> compare(std::span<const TensorMove> moves,
                                std::span<const SourceFile> sources,
                                std::span<const SourceFile> others, const Resources& resources);

}  // namespace shardtool::exec
