#pragma once

#include <span>
#include <vector>

#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Difference between a tensor's destinations and its sources.
struct Difference {
  i64 bytes = 0;    ///< differing bytes, over all destinations
  i64 first = -1;   ///< byte offset of the first differing byte in the whole tensor, of the
                    ///< destinations' element type; -1 if equal
  int holder = -1;  ///< destination holder of the first differing byte
};

/// Executes each move in memory, cast included, and compares the result with the bytes of the
/// destinations in `others`, whose slots count these files. Padding is not compared. With the moves
/// of a copy this verifies its output; with the same holders on both sides it compares replicas.
/// Returns one difference per move. Throws the errors of `stream` and of reading, and kInputChanged
/// if a file changed meanwhile.
std::vector<Difference> compare(std::span<const TensorMove> moves,
                                std::span<const SourceFile> sources,
                                std::span<const SourceFile> others, const Resources& resources);

/// True if the source bytes of every move have its expected digest. Stops at the first that does
/// not. Requires that every move has an expected digest and needs all elements of its tensor.
/// Throws the errors of `stream`.
bool have_digests(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
                  const Resources& resources);

}  // namespace shardtool::exec
