#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/exec/chunks/chunk_plan.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::exec {

/// Selects whether to digest input. Skip it when there is no value to compare with.
enum class Digests { kOfEverything, kNone };

/// Chunk to read.
struct WantedChunk {
  size_t number = 0;  ///< the caller's number of the move
  const TensorMove* move = nullptr;
  const Chunk* chunk = nullptr;
};

/// Chunk whose outputs are in memory.
struct FilledChunk {
  size_t number = 0;  ///< the caller's number of the move
  const TensorMove* move = nullptr;
  const Chunk* chunk = nullptr;
  /// Each output's rows as read, and the place of the same rows in the destinations' element type:
  /// the same memory, or overlapping memory that cast_outputs fills.
  std::vector<std::byte*> outputs;
  std::vector<std::byte*> results;  ///< congruent, modulo a page, to their first target's offset
  /// CRC of an output's bytes if reading has computed it: the kernel put an input into the output
  /// in one piece, so the bytes read and the bytes to write share one memory range.
  std::vector<std::optional<std::uint64_t>> crcs;
  std::uint64_t digest_read = 0;  ///< the chunk's part of the tensor's digest, over the bytes read;
                                  ///< 0 without digests
  i64 total_bytes = 0;            ///< of the whole tensor
  ComputedReport computed;        ///< of a move whose elements are computed

  std::span<const std::byte> bytes_of(size_t output) const {
    return {outputs[output], static_cast<size_t>(chunk->outputs[output].bytes)};
  }
  std::span<const std::byte> result_of(size_t output) const {
    return {results[output], static_cast<size_t>(chunk->outputs[output].result_bytes)};
  }
};

/// Requests for data to object stores, and their bytes.
struct StoreReads {
  i64 requests = 0;
  i64 bytes = 0;
  i64 needed = 0;  ///< bytes that a chunk takes from them

  void add(const StoreReads& other) {
    requests += other.requests;
    bytes += other.bytes;
    needed += other.needed;
  }
};

/// True if the copy is a single run of this many bytes from the source's beginning.
inline bool is_one_run(const index::StridedCopy& copy, i64 bytes) {
  return copy.loops.empty() && copy.src == 0 && copy.run == bytes;
}

/// Reads chunks into one reused arena; one reader per thread.
///
/// Several chunks are read together: adjacent inputs of a file are one read, adjacent outputs of a
/// file are contiguous in memory, so that they can be one write.
///
/// If the pieces are long and the source is in the page cache, the kernel scatters them straight
/// into the outputs (one copy). A range that is the only output is read from the device straight
/// into it (no copy) if the device accepts its address: any multiple of 4 on many, of a sector or a
/// page on others (SourceFile::is_readable_to). Otherwise a source range is read into a staging
/// buffer and copied.
class ChunkReader {
 public:
  explicit ChunkReader(i64 arena_bytes, Digests digests = Digests::kOfEverything);

  /// Upper limit of the arena bytes of a chunk; those of several add up. Staging one range of
  /// inputs needs `kStagingPages` more pages.
  static i64 arena_bytes(const Chunk& chunk);
  static constexpr i64 kStagingPages = 3;

  /// Throws the errors of reading; the error names the first tensor of the range that was read. The
  /// result is valid until the next call.
  std::span<const FilledChunk> fill(std::span<const WantedChunk> chunks,
                                    std::span<const SourceFile> sources);
  /// The requests to object stores that fill() would send for chunks that are not computed.
  StoreReads reads_of(std::span<const WantedChunk> chunks, std::span<const SourceFile> sources);

 private:
  /// Part of a range, in source order, and its destination.
  struct Stretch {
    i64 src = 0;
    std::byte* dst = nullptr;
    i64 bytes = 0;
  };
  /// File position of an input's or an output's bytes.
  struct Located {
    int file = 0;
    i64 offset = 0;
    i64 bytes = 0;
    size_t chunk = 0;   ///< index among the chunks being filled
    size_t number = 0;  ///< index of the chunk's input or output

    i64 end() const { return offset + bytes; }
    bool precedes(const Located& next) const { return file == next.file && end() == next.offset; }
  };
  /// Inputs of one file, with gaps only if it is remote.
  using Range = std::span<const Located>;

  static void begin(const WantedChunk& wanted, FilledChunk& filled);
  /// Places outputs in memory and inputs in their files.
  void locate(std::span<const WantedChunk> chunks);
  /// The inputs from `first` on that are read together.
  Range together_from(size_t first, std::span<const SourceFile> sources) const;
  bool is_plain(const Located& output) const;
  void place_outputs();
  void locate_inputs();
  void read(Range range, const SourceFile& source);
  bool collect_stretches(Range range);
  bool is_output_in_place(Range range, const SourceFile& source) const;
  void digest_stretches(Range range);
  std::uint64_t digest_of(const Located& input, std::span<const Stretch> stretches,
                          i64 range_begin);
  void read_staged(Range range, const SourceFile& source);
  void compute(size_t chunk, std::span<const SourceFile> sources);
  std::byte* staging_for(i64 bytes) const;
  void take(const Located& input, const std::byte* bytes);
  void take_rows(const Located& input, const std::byte* bytes, i64 begin, i64 end);
  /// True if an input is read together with the range before it, of which `needed` bytes are
  /// needed: it follows in the file, or, on an object store, the whole is less than twice the bytes
  /// that are needed.
  bool joins(Range range, i64 needed, const Located& input, const SourceFile& source) const;
  Error named_after(Error error, Range range) const;

  struct FreePages {
    void operator()(std::byte* pages) const;
  };
  i64 arena_bytes_;
  Digests digests_;
  std::unique_ptr<std::byte, FreePages> arena_;
  i64 used_ = 0;
  std::vector<FilledChunk> filled_;
  std::vector<Located> inputs_;
  std::vector<Located> outputs_;
  std::vector<Stretch> stretches_;
  std::vector<iovec> parts_;
};

}  // namespace shardtool::exec
