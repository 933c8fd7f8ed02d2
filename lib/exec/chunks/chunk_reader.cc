#include "lib/exec/chunks/chunk_reader.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/crc64/crc64.h"
#include "kernels/digest/placed_crc64.h"
#include "kernels/strided_copy/strided_copy.h"
#include "lib/exec/chunks/compute_chunk.h"

namespace shardtool::exec {
namespace {

/// Below this size, pieces cost more as iovecs than as memory copies (measured: 512 B is
/// break-even).
constexpr i64 kMinScatterBytes = 512;
/// Above this number the pieces of a chunk are copied: the list would not fit the cache.
constexpr i64 kMaxStretches = 16384;

constexpr i64 kHugePageBytes = 2 << 20;

/// Bytes of a staged input that are digested and then copied at a time: fits the cache of a core.
constexpr i64 kTakenBytes = 256 << 10;
/// This many elements of any width are whole bytes.
constexpr i64 kByteElements = 8;

/// Sorts by file and offset; empty ranges come first at equal offsets.
template <class Located>
void sort_by_place(std::vector<Located>& places) {
  const auto before = [](const Located& a, const Located& b) {
    const bool is_same = a.file == b.file && a.offset == b.offset;
    return is_same ? a.bytes < b.bytes : lies_before(a, b);
  };
  if (!std::is_sorted(places.begin(), places.end(), before)) {
    std::sort(places.begin(), places.end(), before);
  }
}

/// Bytes for an output as read and as cast in place.
i64 memory_of(const ChunkOutput& output) {
  return std::max(output.bytes, output.result_bytes);
}

/// Records the CRC if this memory is all of an output.
void note_crc(const std::byte* memory, i64 bytes, std::uint64_t crc, FilledChunk& filled) {
  const auto output = std::find(filled.outputs.begin(), filled.outputs.end(), memory);
  if (output == filled.outputs.end()) return;
  const auto number = static_cast<size_t>(output - filled.outputs.begin());
  if (filled.chunk->outputs[number].bytes == bytes) filled.crcs[number] = crc;
}

/// CRC of source bytes from `src` on, in source order, over the scattered memory.
template <class Stretches>
std::uint64_t crc_of(const Stretches& stretches, i64 src, i64 bytes) {
  auto at = std::prev(std::upper_bound(stretches.begin(), stretches.end(), src,
                                       [](i64 value, const auto& s) { return value < s.src; }));
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

}  // namespace

void ChunkReader::FreePages::operator()(std::byte* pages) const {
  std::free(pages);
}

ChunkReader::ChunkReader(i64 arena_bytes, Digests digests)
    : arena_bytes_(round_up(arena_bytes, kPageBytes)), digests_(digests) {
  const i64 huge_bytes = arena_bytes_ / kHugePageBytes * kHugePageBytes;
  arena_.reset(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<size_t>(huge_bytes > 0 ? kHugePageBytes : kPageBytes),
                         static_cast<size_t>(arena_bytes_))));
  if (!arena_) throw std::bad_alloc();
  // Advice only: direct I/O pins pages, and there are fewer large ones. The rest is no whole one.
  if (huge_bytes > 0) ::madvise(arena_.get(), static_cast<size_t>(huge_bytes), MADV_HUGEPAGE);
}

i64 ChunkReader::arena_bytes(const Chunk& chunk) {
  i64 bytes = 0;
  for (const ChunkInput& input : chunk.inputs) bytes += input.bytes;
  for (const ChunkOutput& output : chunk.outputs) bytes += memory_of(output) + 2 * kPageBytes;
  return bytes;
}

/// True if the output is as long in memory as in the file, so that one may follow it.
bool ChunkReader::is_plain(const Located& output) const {
  const ChunkOutput& planned = filled_[output.chunk].chunk->outputs[output.number];
  return planned.bytes == planned.result_bytes;
}

/// Places outputs from the front of the arena, each congruent to its file offset, and a single one
/// after a free page, so that a read can begin with a whole page; without enough room they are
/// packed, which only costs buffered writes.
void ChunkReader::place_outputs() {
  outputs_.clear();
  i64 needed = kStagingPages * kPageBytes;
  for (size_t c = 0; c < filled_.size(); ++c) {
    const Chunk& chunk = *filled_[c].chunk;
    needed += arena_bytes(chunk);
    for (size_t o = 0; o < chunk.outputs.size(); ++o) {
      const ChunkOutput& output = chunk.outputs[o];
      const ChunkTarget& target = output.targets.front();
      const Slot& slot = filled_[c].move->to.slots[static_cast<size_t>(target.holder)];
      outputs_.push_back({slot.file, slot.offset + target.offset, output.result_bytes, c, o});
    }
  }
  const bool has_room = needed <= arena_bytes_;
  sort_by_place(outputs_);
  used_ = has_room && outputs_.size() == 1 ? kPageBytes : 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Located& output = outputs_[i];
    FilledChunk& filled = filled_[output.chunk];
    const ChunkOutput& planned = filled.chunk->outputs[output.number];
    const bool follows = i > 0 && outputs_[i - 1].precedes(output) && is_plain(outputs_[i - 1]);
    if (has_room && !follows) used_ = round_up(used_, kPageBytes) + output.offset % kPageBytes;
    std::byte* const memory = arena_.get() + used_;
    filled.results[output.number] = memory;
    // A cast goes from front to back: wider results begin before the elements that they come from.
    filled.outputs[output.number] = memory + memory_of(planned) - planned.bytes;
    if (planned.has_padding) {
      std::memset(filled.outputs[output.number], 0, static_cast<size_t>(planned.bytes));
    }
    used_ += memory_of(planned);
  }
}

void ChunkReader::locate_inputs() {
  inputs_.clear();
  for (size_t c = 0; c < filled_.size(); ++c) {
    const Chunk& chunk = *filled_[c].chunk;
    if (filled_[c].move->computed) continue;
    for (size_t i = 0; i < chunk.inputs.size(); ++i) {
      const ChunkInput& input = chunk.inputs[i];
      const Slot& slot = filled_[c].move->from.slots[static_cast<size_t>(input.holder)];
      inputs_.push_back({slot.file, slot.offset + input.offset, input.bytes, c, i});
    }
  }
  sort_by_place(inputs_);
}

/// Fills stretches_ if the kernel can scatter this range: every byte of it goes to exactly one
/// destination, in pieces that are long enough.
bool ChunkReader::collect_stretches(Range range) {
  stretches_.clear();
  for (const Located& input : range) {
    const FilledChunk& filled = filled_[input.chunk];
    const i64 begin = input.offset - range.front().offset;
    for (const ChunkCopy& copy : filled.chunk->copies) {
      if (copy.input != static_cast<int>(input.number)) continue;
      if (copy.copy.run < kMinScatterBytes || copy.copy.loops.size() > 1) return false;
      const index::Loop loop = copy.copy.loops.empty() ? index::Loop{} : copy.copy.loops.front();
      if (std::ssize(stretches_) + loop.count > kMaxStretches) return false;
      std::byte* const to = filled.outputs[static_cast<size_t>(copy.output)] + copy.copy.dst;
      for (i64 i = 0; i < loop.count; ++i) {
        stretches_.push_back(
            {begin + copy.copy.src + i * loop.src_stride, to + i * loop.dst_stride, copy.copy.run});
      }
    }
  }
  const auto before = [](const Stretch& a, const Stretch& b) { return a.src < b.src; };
  if (!std::is_sorted(stretches_.begin(), stretches_.end(), before)) {
    std::sort(stretches_.begin(), stretches_.end(), before);
  }
  i64 next = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.src != next) return false;
    next += stretch.bytes;
  }
  return next == range.back().end() - range.front().offset;
}

void ChunkReader::digest_stretches(Range range) {
  if (digests_ == Digests::kNone) return;
  const std::span<const Stretch> all = stretches_;
  size_t next = 0;
  for (const Located& input : range) {
    const size_t first = next;
    const i64 end = input.end() - range.front().offset;
    while (next < all.size() && all[next].src < end) ++next;
    filled_[input.chunk].digest_read ^=
        digest_of(input, all.subspan(first, next - first), input.offset - range.front().offset);
  }
}

std::uint64_t ChunkReader::digest_of(const Located& input, std::span<const Stretch> stretches,
                                     i64 range_begin) {
  FilledChunk& filled = filled_[input.chunk];
  std::uint64_t digest = 0;
  for (const ChunkPlace& place : filled.chunk->input_places) {
    if (place.range != static_cast<int>(input.number)) continue;
    const Stretch& first = stretches.front();
    if (stretches.size() == 1 && is_one_run(place.place, first.bytes)) {
      const std::uint64_t crc = kernels::Crc64::of({first.dst, static_cast<size_t>(first.bytes)});
      digest ^= kernels::placed_crc64(
          place.place, [crc](i64) { return crc; }, filled.total_bytes);
      note_crc(first.dst, first.bytes, crc, filled);
      continue;
    }
    if (stretches.size() == 1) {  // contiguous in memory, as in the file
      digest ^= kernels::placed_crc64(place.place, first.dst, filled.total_bytes);
      continue;
    }
    const auto crc_of_run = [&](i64 src) {
      return crc_of(stretches, range_begin + src, place.place.run);
    };
    digest ^= kernels::placed_crc64(place.place, crc_of_run, filled.total_bytes);
  }
  return digest;
}

void ChunkReader::read_staged(Range range, const SourceFile& source) {
  const i64 bytes = range.back().end() - range.front().offset;
  const std::byte* const read = source.read(staging_for(bytes), bytes, range.front().offset);
  for (const Located& input : range) take(input, read + (input.offset - range.front().offset));
}

/// Returns memory behind the outputs, with room for two pages more.
std::byte* ChunkReader::staging_for(i64 bytes) const {
  std::byte* const staging = arena_.get() + round_up(used_, kPageBytes);
  if (staging + bytes + 2 * kPageBytes > arena_.get() + arena_bytes_) {
    throw Error(ErrorCode::kInternal, "a chunk does not fit its arena");
  }
  return staging;
}

/// Computes a chunk's inputs in the staging buffer; an input that is the only output, there.
void ChunkReader::compute(size_t number, std::span<const SourceFile> sources) {
  FilledChunk& filled = filled_[number];
  const Chunk& chunk = *filled.chunk;
  for (size_t i = 0; i < chunk.inputs.size(); ++i) {
    const ChunkInput& input = chunk.inputs[i];
    const bool is_output = chunk.copies.size() == 1 && chunk.outputs.size() == 1 &&
                           chunk.outputs[0].bytes == input.bytes &&
                           is_one_run(chunk.copies[0].copy, input.bytes);
    std::byte* const memory = is_output ? filled.outputs[0] : staging_for(input.bytes);
    filled.computed += compute_input(*filled.move, chunk, static_cast<int>(i), memory, sources);
    if (!is_output) {
      take({0, 0, input.bytes, number, i}, memory);
      continue;
    }
    if (digests_ == Digests::kNone) continue;
    const auto crc = kernels::Crc64::of(filled.bytes_of(0));
    filled.crcs[0] = crc;
    filled.digest_read = kernels::placed_crc64(
        chunk.input_places[0].place, [crc](i64) { return crc; }, filled.total_bytes);
  }
}

/// Digests and copies in blocks of rows, so that the copied bytes are still in the cache.
void ChunkReader::take(const Located& input, const std::byte* bytes) {
  const i64 rows = filled_[input.chunk].chunk->rows;
  const i64 blocks = std::max<i64>(input.bytes / kTakenBytes, 1);
  const i64 block = round_up(ceil_div(rows, blocks), kByteElements);
  for (i64 begin = 0; begin < rows; begin += block) {
    take_rows(input, bytes, begin, std::min(begin + block, rows));
  }
}

void ChunkReader::take_rows(const Located& input, const std::byte* bytes, i64 begin, i64 end) {
  FilledChunk& filled = filled_[input.chunk];
  const int number = static_cast<int>(input.number);
  const auto part = [&](const index::StridedCopy& copy) {
    return index::rows_of(copy, filled.chunk->rows, begin, end);
  };
  for (const ChunkPlace& place : filled.chunk->input_places) {
    if (digests_ == Digests::kNone) break;
    if (place.range != number) continue;
    filled.digest_read ^= kernels::placed_crc64(part(place.place), bytes, filled.total_bytes);
  }
  for (const ChunkCopy& copy : filled.chunk->copies) {
    if (copy.input != number) continue;
    kernels::strided_copy(part(copy.copy), bytes, filled.outputs[static_cast<size_t>(copy.output)]);
  }
}

/// True if the range is the only output and can be read straight into it: the surrounding memory is
/// then unused, so that whole pages can be read.
bool ChunkReader::is_output_in_place(Range range, const SourceFile& source) const {
  if (outputs_.size() != 1 || stretches_.size() != 1) return false;
  const Stretch& all = stretches_.front();
  const i64 offset = range.front().offset;
  const i64 begin = all.dst - arena_.get() - offset % kPageBytes;
  const i64 end = begin + round_up(offset % kPageBytes + all.bytes, kPageBytes);
  const Located& output = outputs_.front();
  return all.bytes == filled_[output.chunk].chunk->outputs[output.number].bytes && begin >= 0 &&
         end <= arena_bytes_ && source.is_readable_to(all.dst, offset);
}

void ChunkReader::read(Range range, const SourceFile& source) {
  const i64 offset = range.front().offset;
  const i64 bytes = range.back().end() - offset;
  const bool is_direct = source.wants_direct(offset, bytes);
  // Several outputs are staged without collecting their pieces.
  const bool is_staged = (is_direct && outputs_.size() > 1) || !collect_stretches(range) ||
                         (is_direct && !is_output_in_place(range, source));
  if (is_staged) return read_staged(range, source);
  if (is_direct) {
    source.read_pages(stretches_.front().dst - offset % kPageBytes, bytes, offset);
  } else {
    parts_.clear();
    for (const Stretch& stretch : stretches_) {
      parts_.push_back({stretch.dst, static_cast<size_t>(stretch.bytes)});
    }
    source.read_scattered(parts_, offset);
  }
  digest_stretches(range);
}

bool ChunkReader::joins(Range range, i64 needed, const Located& input,
                        const SourceFile& source) const {
  const Located& last = range.back();
  if (last.precedes(input)) return true;
  if (!source.is_remote() || last.file != input.file || input.offset < last.end()) return false;
  const i64 span = input.end() - range.front().offset;
  return span < 2 * (needed + input.bytes) &&
         round_up(used_, kPageBytes) + span + 2 * kPageBytes <= arena_bytes_;
}

Error ChunkReader::named_after(Error error, Range range) const {
  const auto number = [this](const Located& input) { return filled_[input.chunk].number; };
  i64 others = 0;
  for (size_t i = 1; i < range.size(); ++i) others += number(range[i]) != number(range[i - 1]);
  if (others > 0) error.note("read together with", fmt::format("{} tensors behind it", others));
  return error.tensor(filled_[range.front().chunk].move->name);
}

/// Reuses the memory of the previous chunk, because there are many tensors.
void ChunkReader::begin(const WantedChunk& wanted, FilledChunk& filled) {
  filled.number = wanted.number;
  filled.move = wanted.move;
  filled.chunk = wanted.chunk;
  filled.outputs.assign(wanted.chunk->outputs.size(), nullptr);
  filled.results.assign(wanted.chunk->outputs.size(), nullptr);
  filled.crcs.assign(wanted.chunk->outputs.size(), std::nullopt);
  filled.digest_read = 0;
  filled.computed = {};
  filled.total_bytes = *byte_size(wanted.move->dtype, wanted.move->shape);
}

void ChunkReader::locate(std::span<const WantedChunk> chunks) {
  filled_.resize(chunks.size());
  for (size_t c = 0; c < chunks.size(); ++c) begin(chunks[c], filled_[c]);
  place_outputs();
  locate_inputs();
}

ChunkReader::Range ChunkReader::together_from(size_t first,
                                              std::span<const SourceFile> sources) const {
  const SourceFile& source = sources[static_cast<size_t>(inputs_[first].file)];
  Range range(inputs_.data() + first, 1);
  i64 needed = range.front().bytes;
  for (size_t i = first + 1; i < inputs_.size(); ++i) {
    if (!joins(range, needed, inputs_[i], source)) break;
    needed += inputs_[i].bytes;
    range = {range.data(), range.size() + 1};
  }
  return range;
}

StoreReads ChunkReader::reads_of(std::span<const WantedChunk> chunks,
                                 std::span<const SourceFile> sources) {
  locate(chunks);
  StoreReads reads;
  for (size_t first = 0; first < inputs_.size();) {
    const Range range = together_from(first, sources);
    first += range.size();
    if (!sources[static_cast<size_t>(range.front().file)].is_remote()) continue;
    ++reads.requests;
    reads.bytes += range.back().end() - range.front().offset;
    for (const Located& input : range) reads.needed += input.bytes;
  }
  return reads;
}

std::span<const FilledChunk> ChunkReader::fill(std::span<const WantedChunk> chunks,
                                               std::span<const SourceFile> sources) {
  locate(chunks);
  for (size_t first = 0; first < inputs_.size();) {
    const Range range = together_from(first, sources);
    first += range.size();
    try {
      read(range, sources[static_cast<size_t>(range.front().file)]);
    } catch (Error& error) {
      throw named_after(error, range);
    }
  }
  for (size_t c = 0; c < filled_.size(); ++c) {
    if (filled_[c].move->computed) compute(c, sources);
  }
  return filled_;
}

}  // namespace shardtool::exec
