#include "lib/exec/compare.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "lib/base/error.h"
#include "lib/exec/chunks/cast_chunk.h"
#include "lib/exec/files/file_blocks.h"

namespace shardtool::exec {
namespace {

void note_first(Difference& into, i64 offset, int holder) {
  if (into.first >= 0 && into.first <= offset) return;
  into.first = offset;
  into.holder = holder;
}

void merge_into(Difference& total, const Difference& part) {
  total.bytes += part.bytes;
  if (part.first >= 0) note_first(total, part.first, part.holder);
}

/// Compares bytes [at, at + size) of an output with other bytes, through the placement of the
/// output in the whole tensor.
struct OutputCompare {
  const FilledChunk& filled;
  size_t output;
  int holder;

  Difference stretch(i64 at, std::span<const std::byte> other) const {
    const std::byte* const mine = filled.results[output] + at;
    Difference difference;
    if (std::memcmp(mine, other.data(), other.size()) == 0) return difference;
    const i64 end = at + static_cast<i64>(other.size());
    for (const ChunkPlace& place : filled.chunk->output_places) {
      if (place.range != static_cast<int>(output)) continue;
      const index::StridedCopy in_result = result_place(place.place, *filled.move);
      for_each_run(in_result, [&](i64 src, i64 dst) {
        for (i64 b = std::max(src, at); b < std::min(src + in_result.run, end); ++b) {
          if (mine[b - at] == other[static_cast<size_t>(b - at)]) continue;
          ++difference.bytes;
          note_first(difference, dst + b - src, holder);
        }
      });
    }
    return difference;
  }
};

/// Compares an output of a chunk, block by block, with the bytes at one of its targets.
Difference compare_target(const FilledChunk& filled, size_t output, const ChunkTarget& target,
                          std::span<const SourceFile> others) {
  thread_local const PageBuffer buffer(kBlockBufferBytes);
  const Slot& slot = filled.move->to.slots[static_cast<size_t>(target.holder)];
  const OutputCompare with{filled, output, target.holder};
  Difference found;
  i64 at = 0;
  read_blocks(others[static_cast<size_t>(slot.file)], slot.offset + target.offset,
              filled.chunk->outputs[output].result_bytes, buffer,
              [&](std::span<const std::byte> block) {
                merge_into(found, with.stretch(at, block));
                at += std::ssize(block);
              });
  return found;
}

/// Casts the outputs of a chunk, and compares each with all of its targets.
Difference compare_outputs(const FilledChunk& filled, std::span<const SourceFile> others) {
  Difference found;
  cast_outputs(filled);
  for (size_t i = 0; i < filled.outputs.size(); ++i) {
    for (const ChunkTarget& target : filled.chunk->outputs[i].targets) {
      merge_into(found, compare_target(filled, i, target, others));
    }
  }
  return found;
}

/// Ends a run that has found what it looks for.
struct Found {};

}  // namespace

std::vector<Difference> compare(std::span<const TensorMove> moves,
                                std::span<const SourceFile> sources,
                                std::span<const SourceFile> others, const Resources& resources) {
  std::vector<Difference> differences(moves.size());
  std::mutex mutex;
  const auto compare_chunks = [&](std::span<const FilledChunk> chunks, Turnstile&) {
    for (const FilledChunk& filled : chunks) {
      try {
        const Difference found = compare_outputs(filled, others);
        const std::lock_guard lock(mutex);
        merge_into(differences[filled.number], found);
      } catch (Error& error) {
        throw error.tensor(filled.move->name);
      }
    }
  };
  stream(moves, sources, resources,
         {[](size_t, const ChunkPlan&) {}, compare_chunks, [](size_t) {}});
  for (const SourceFile& other : others) other.check_unchanged();
  return differences;
}

bool have_digests(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
                  const Resources& resources) {
  std::vector<std::atomic<std::uint64_t>> digests(moves.size());
  const auto add = [&](std::span<const FilledChunk> chunks, Turnstile&) {
    for (const FilledChunk& filled : chunks) digests[filled.number] ^= filled.digest_read;
  };
  const auto check = [&](size_t move) {
    if (digests[move] != moves[move].expected_digest) throw Found();
  };
  try {
    stream(moves, sources, resources, {[](size_t, const ChunkPlan&) {}, add, check});
  } catch (const Found&) {
    return false;
  }
  return true;
}

}  // namespace shardtool::exec
