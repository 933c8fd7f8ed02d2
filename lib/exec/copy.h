#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/exec/stream.h"

namespace shardtool::exec {

/// What a copied tensor turned out to be.
struct CopiedTensor {
  std::uint64_t digest = 0;  ///< linear CRC-64 of the elements that were wanted, each once
  bool is_whole = false;     ///< all elements were wanted: `digest` is the tensor's
  std::vector<kernels::Hash128> xxh3;  ///< of each destination holder's bytes
  i64 shared_bytes = 0;                ///< written by sharing the source's space
};

/// Hears of every tensor whose bytes are all written; from any thread, for one tensor once.
using OnCopied = std::function<void(size_t move, const CopiedTensor& copied)>;

/// Copies every tensor from its sources to its destinations; `targets` are own files of their final
/// size, zero where nothing is written (padding). Digests what it read and, from the outgoing
/// buffers, what it writes. Throws kDataMismatch when the two differ or a tensor's expected digest
/// is another, and what `stream` and writing throw.
std::vector<CopiedTensor> copy(const MoveList& moves, std::span<const SourceFile> sources,
                               std::span<const TargetFile> targets, const Resources& resources,
                               const OnCopied& on_copied = {});

}  // namespace shardtool::exec
