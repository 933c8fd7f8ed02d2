#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shardtool/exec/chunk_plan.h"
#include "shardtool/exec/data_file.h"

namespace shardtool::exec {

/// Whether a run digests what it reads. What nothing is held against needs no digest.
enum class Digests { kOfEverything, kNone };

/// A chunk whose outputs are in memory.
struct FilledChunk {
  const Chunk* chunk = nullptr;
  std::vector<std::byte*>
      outputs;  ///< congruent, modulo a page, to their first target's file offset
  /// The CRC of an output's bytes, where reading has computed it: the kernel put an input into the
  /// output in one piece, so that what was read and what is written are one memory.
  std::vector<std::optional<std::uint64_t>> crcs;
  std::uint64_t digest_read = 0;  ///< the chunk's part of the tensor's digest, of what was read; 0
                                  ///< without digests
};

/// Whether the copy is this many bytes from the source's beginning on, in one run.
inline bool is_one_run(const index::StridedCopy& copy, i64 bytes) {
  return copy.loops.empty() && copy.src == 0 && copy.run == bytes;
}

/// Reads chunks into one arena, again and again; one per thread.
///
/// Where the pieces are long and the source is in the page cache, the kernel scatters them straight
/// into the outputs (one copy). Otherwise a source range is read into a staging buffer and copied.
class ChunkReader {
 public:
  explicit ChunkReader(i64 arena_bytes, Digests digests = Digests::kOfEverything);

  /// `total_bytes` is the whole tensor's. The result is valid until the next call.
  FilledChunk fill(const Chunk& chunk, const TensorMove& move, std::span<const SourceFile> sources,
                   i64 total_bytes);

 private:
  /// A stretch of an input, in source order, and where it goes.
  struct Stretch {
    i64 src = 0;
    std::byte* dst = nullptr;
    i64 bytes = 0;
  };

  void place_outputs(const Chunk& chunk, const TensorMove& move, FilledChunk& filled);
  bool collect_stretches(const Chunk& chunk, int input, const FilledChunk& filled);
  std::uint64_t read_scattered(const Chunk& chunk, int input, FilledChunk& filled,
                               const SourceFile& source, i64 offset, i64 total_bytes);
  std::uint64_t digest_of_stretches(const Chunk& chunk, int input, FilledChunk& filled,
                                    i64 total_bytes) const;
  std::uint64_t crc_of_stretches(i64 src, i64 bytes) const;
  std::uint64_t read_staged(const Chunk& chunk, int input, const FilledChunk& filled,
                            const SourceFile& source, i64 offset, i64 total_bytes);

  struct FreePages {
    void operator()(std::byte* pages) const;
  };
  i64 arena_bytes_;
  Digests digests_;
  std::unique_ptr<std::byte, FreePages> arena_;
  i64 used_ = 0;
  std::vector<Stretch> stretches_;
  std::vector<iovec> parts_;
};

}  // namespace shardtool::exec
