#include "shardtool/exec/chunk_reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "shardtool/base/error.h"
#include "shardtool/kernels/crc64/crc64.h"
#include "shardtool/kernels/digest/placed_crc64.h"
#include "shardtool/kernels/strided_copy/strided_copy.h"

namespace shardtool::exec {
namespace {

/// Shorter pieces cost more as iovecs than as memory copies (measured: 512 B is break-even).
constexpr i64 kMinScatterBytes = 512;
/// More pieces than this in a chunk are copied: the list would not fit the cache.
constexpr i64 kMaxStretches = 16384;

constexpr i64 kHugePageBytes = 2 << 20;

i64 run_count(const index::StridedCopy& copy) {
  i64 count = 1;
  for (const index::Loop& loop : copy.loops) count *= loop.count;
  return count;
}

/// When this memory is all of an output, its CRC is known.
void note_crc(const Chunk& chunk, const std::byte* memory, i64 bytes, std::uint64_t crc,
              FilledChunk& filled) {
  const auto output = std::find(filled.outputs.begin(), filled.outputs.end(), memory);
  if (output == filled.outputs.end()) return;
  const auto number = static_cast<size_t>(output - filled.outputs.begin());
  if (chunk.outputs[number].bytes == bytes) filled.crcs[number] = crc;
}

}  // namespace

void ChunkReader::FreePages::operator()(std::byte* pages) const {
  std::free(pages);
}

ChunkReader::ChunkReader(i64 arena_bytes, Digests digests)
    : arena_bytes_(round_up(arena_bytes, kPageBytes)), digests_(digests) {
  const auto size = static_cast<size_t>(round_up(arena_bytes_, kHugePageBytes));
  arena_.reset(
      static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(kHugePageBytes), size)));
  if (!arena_) throw std::bad_alloc();
  // Advice only: direct I/O pins pages, and large ones are fewer.
  ::madvise(arena_.get(), size, MADV_HUGEPAGE);
}

/// Outputs from the front of the arena, each congruent to where it will be written; without room
/// for that they are packed, which costs buffered writes and nothing else.
void ChunkReader::place_outputs(const Chunk& chunk, const TensorMove& move, FilledChunk& filled) {
  i64 packed = 0;
  i64 largest_input = 0;
  for (const ChunkOutput& output : chunk.outputs) packed += output.bytes;
  for (const ChunkInput& input : chunk.inputs) largest_input = std::max(largest_input, input.bytes);
  const i64 aligned = packed + 2 * kPageBytes * static_cast<i64>(chunk.outputs.size());
  const bool has_room = aligned + largest_input + 3 * kPageBytes <= arena_bytes_;
  used_ = 0;
  for (const ChunkOutput& output : chunk.outputs) {
    if (has_room) {
      const ChunkTarget& target = output.targets.front();
      const i64 in_file = move.to.slots[static_cast<size_t>(target.holder)].offset + target.offset;
      used_ = round_up(used_, kPageBytes) + in_file % kPageBytes;
    }
    filled.outputs.push_back(arena_.get() + used_);
    if (output.has_padding)
      std::memset(filled.outputs.back(), 0, static_cast<size_t>(output.bytes));
    used_ += output.bytes;
  }
}

/// Fills stretches_ when the kernel can scatter this input: every byte of it goes to exactly one
/// place, in pieces that are long enough.
bool ChunkReader::collect_stretches(const Chunk& chunk, int input, const FilledChunk& filled) {
  stretches_.clear();
  i64 pieces = 0;
  for (const ChunkCopy& copy : chunk.copies) {
    if (copy.input != input) continue;
    pieces += run_count(copy.copy);
    if (copy.copy.run < kMinScatterBytes || pieces > kMaxStretches || copy.copy.loops.size() > 1) {
      return false;
    }
  }
  for (const ChunkCopy& copy : chunk.copies) {
    if (copy.input != input) continue;
    const index::Loop loop = copy.copy.loops.empty() ? index::Loop{} : copy.copy.loops.front();
    std::byte* const to = filled.outputs[static_cast<size_t>(copy.output)] + copy.copy.dst;
    for (i64 i = 0; i < loop.count; ++i) {
      stretches_.push_back(
          {copy.copy.src + i * loop.src_stride, to + i * loop.dst_stride, copy.copy.run});
    }
  }
  std::sort(stretches_.begin(), stretches_.end(),
            [](const Stretch& a, const Stretch& b) { return a.src < b.src; });
  i64 next = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.src != next) return false;
    next += stretch.bytes;
  }
  return next == chunk.inputs[static_cast<size_t>(input)].bytes;
}

std::uint64_t ChunkReader::read_scattered(const Chunk& chunk, int input, FilledChunk& filled,
                                          const SourceFile& source, i64 offset, i64 total_bytes) {
  parts_.clear();
  for (const Stretch& stretch : stretches_) {
    parts_.push_back({stretch.dst, static_cast<size_t>(stretch.bytes)});
  }
  source.read_scattered(parts_, offset);
  return digest_of_stretches(chunk, input, filled, total_bytes);
}

std::uint64_t ChunkReader::digest_of_stretches(const Chunk& chunk, int input, FilledChunk& filled,
                                               i64 total_bytes) const {
  if (digests_ == Digests::kNone) return 0;
  std::uint64_t digest = 0;
  for (const ChunkPlace& place : chunk.input_places) {
    if (place.range != input) continue;
    const Stretch& first = stretches_.front();
    if (stretches_.size() == 1 && is_one_run(place.place, first.bytes)) {
      const std::uint64_t crc = kernels::Crc64::of({first.dst, static_cast<size_t>(first.bytes)});
      digest ^= kernels::placed_crc64(
          place.place, [crc](i64) { return crc; }, total_bytes);
      note_crc(chunk, first.dst, first.bytes, crc, filled);
      continue;
    }
    if (stretches_.size() == 1) {  // side by side in memory, as they were in the file
      digest ^= kernels::placed_crc64(place.place, first.dst, total_bytes);
      continue;
    }
    const auto crc_of_run = [&](i64 src) { return crc_of_stretches(src, place.place.run); };
    digest ^= kernels::placed_crc64(place.place, crc_of_run, total_bytes);
  }
  return digest;
}

/// Follows the source's order through the memory that it was scattered over.
std::uint64_t ChunkReader::crc_of_stretches(i64 src, i64 bytes) const {
  auto at = std::prev(std::upper_bound(stretches_.begin(), stretches_.end(), src,
                                       [](i64 value, const Stretch& s) { return value < s.src; }));
  std::uint64_t crc = 0;
  while (bytes > 0) {
    const i64 skip = src - at->src;
    const i64 take = std::min(bytes, at->bytes - skip);
    crc = kernels::Crc64::extend(crc, {at->dst + skip, static_cast<size_t>(take)});
    src += take;
    bytes -= take;
    ++at;
  }
  return crc;
}

std::uint64_t ChunkReader::read_staged(const Chunk& chunk, int input, const FilledChunk& filled,
                                       const SourceFile& source, i64 offset, i64 total_bytes) {
  const ChunkInput& range = chunk.inputs[static_cast<size_t>(input)];
  std::byte* const staging = arena_.get() + round_up(used_, kPageBytes);
  if (staging + range.bytes + 2 * kPageBytes > arena_.get() + arena_bytes_) {
    throw Error(ErrorCode::kInternal, "a chunk does not fit its arena");
  }
  const std::byte* const bytes = source.read(staging, range.bytes, offset);
  std::uint64_t digest = 0;
  for (const ChunkPlace& place : chunk.input_places) {
    if (digests_ == Digests::kNone) break;
    if (place.range == input) digest ^= kernels::placed_crc64(place.place, bytes, total_bytes);
  }
  for (const ChunkCopy& copy : chunk.copies) {
    if (copy.input != input) continue;
    kernels::strided_copy(copy.copy, bytes, filled.outputs[static_cast<size_t>(copy.output)]);
  }
  return digest;
}

FilledChunk ChunkReader::fill(const Chunk& chunk, const TensorMove& move,
                              std::span<const SourceFile> sources, i64 total_bytes) {
  FilledChunk filled;
  filled.chunk = &chunk;
  place_outputs(chunk, move, filled);
  filled.crcs.resize(filled.outputs.size());
  for (size_t i = 0; i < chunk.inputs.size(); ++i) {
    const ChunkInput& input = chunk.inputs[i];
    const Slot& slot = move.from.slots[static_cast<size_t>(input.holder)];
    const SourceFile& source = sources[static_cast<size_t>(slot.file)];
    const i64 offset = slot.offset + input.offset;
    const int number = static_cast<int>(i);
    const bool scatters =
        !source.wants_direct(offset, input.bytes) && collect_stretches(chunk, number, filled);
    filled.digest_read ^= scatters
                              ? read_scattered(chunk, number, filled, source, offset, total_bytes)
                              : read_staged(chunk, number, filled, source, offset, total_bytes);
  }
  return filled;
}

}  // namespace shardtool::exec
