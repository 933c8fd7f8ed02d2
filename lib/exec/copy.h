#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cast/cast.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Effect of a move's cast.
struct CastReport {
  kernels::CastCounts counts;       ///< of the needed elements, each once
  std::uint64_t source_digest = 0;  ///< CopiedTensor::digest of the elements before the cast

  bool operator==(const CastReport&) const = default;
};

/// Result of copying a tensor.
struct CopiedTensor {
  std::uint64_t digest = 0;            ///< linear CRC-64 of the needed elements, each once, as
                                       ///< written
  bool is_whole = false;               ///< all elements were needed: `digest` is the tensor's
  std::vector<kernels::Hash128> xxh3;  ///< of each destination holder's bytes
  i64 shared_bytes = 0;                ///< written by sharing the source's space
  /// Destination holders whose hash is not known yet: their bytes came out of order, to an object
  /// that cannot be read before the output is complete.
  std::vector<int> unhashed = {};
  std::optional<CastReport> cast = {};
  std::optional<ComputedReport> computed = {};
  bool is_unread = false;  ///< an object store copied the bytes: no digest, no hashes

  std::uint64_t source_digest() const { return cast ? cast->source_digest : digest; }
};

/// Called once per tensor after its last byte is written, possibly from several threads.
using OnCopied = std::function<void(size_t move, const CopiedTensor& copied)>;

/// Copies every tensor from its sources to its destinations; `targets` are own files of their final
/// size, zero in unwritten ranges (padding); objects get the zeros, too. Computes two digests of a
/// tensor: of the bytes read, and of the outgoing buffers before they are cast. Throws
/// kDataMismatch if the two differ or the expected digest is another one, and the errors of
/// `stream` and of writing.
std::vector<CopiedTensor> copy(const MoveList& moves, std::span<const SourceFile> sources,
                               std::span<const TargetFile> targets, const Resources& resources,
                               const OnCopied& on_copied = {});

}  // namespace shardtool::exec
