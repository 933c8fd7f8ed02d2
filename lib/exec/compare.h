#pragma once

#include <span>
#include <vector>

#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Difference between a tensor's destinations and its sources.
struct Difference {
  i64 bytes = 0;    ///< differing bytes, over all destinations
  i64 first = -1;   ///< byte offset in the whole tensor (of the destinations' element type) of the
                    ///< first one, -1 when equal
  int holder = -1;  ///< destination holder of the first one
};

/// Reads every tensor from its sources as its destinations hold it, and compares it with the
/// existing bytes in `others`, element by element, after a move's cast, without padding. The same
/// move that would write a layout proves that it was written right; with a tensor's holders on both
/// sides it proves that replicas agree.
std::vector<Difference> compare(std::span<const TensorMove> moves,
                                std::span<const SourceFile> sources,
                                std::span<const SourceFile> others, const Resources& resources);

/// True if every tensor has its expected digest, over all bytes that are read, before a move's
/// cast. Ends with the first that has not. Every element is needed, and every move expects a
/// digest.
bool have_digests(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
                  const Resources& resources);

}  // namespace shardtool::exec
