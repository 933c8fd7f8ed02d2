#include "shardtool/exec/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "shardtool/base/error.h"
#include "shardtool/exec/range_hash.h"
#include "shardtool/kernels/digest/placed_crc64.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::exec {
namespace {

/// The running hash of one destination's bytes, fed front to back; what lies between is padding.
struct ShardHash {
  kernels::Xxh3 hash;
  i64 next = 0;

  void skip_to(i64 offset) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    while (next < offset) {
      const i64 zeros = std::min<i64>(offset - next, kZeros.size());
      hash.update(std::span(kZeros).first(static_cast<size_t>(zeros)));
      next += zeros;
    }
  }
  void add(i64 offset, std::span<const std::byte> bytes) {
    skip_to(offset);
    hash.update(bytes);
    next += static_cast<i64>(bytes.size());
  }
};

/// A tensor between begin and end.
struct Copying {
  std::vector<int> group;  ///< per destination: the first replica of its group
  /// Of the first replicas whose bytes come front to back; the others are hashed when written.
  std::map<int, ShardHash> hashes;
  std::mutex mutex;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  i64 bytes = 0;
  i64 shared = 0;
};

i64 holder_bytes(const index::HolderSet& holders, int holder, Dtype dtype) {
  return *byte_size(dtype, index::local_shape(holders.region(holder)));
}

class Copier {
 public:
  Copier(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
         std::span<const TargetFile> targets)
      : moves_(moves),
        sources_(sources),
        targets_(targets),
        open_(moves.size()),
        done_(moves.size()) {}

  void begin(size_t number, const ChunkPlan& plan) {
    auto copying = std::make_unique<Copying>();
    const index::HolderSet& holders = *moves_[number].to.holders;
    for (int h = 0; h < holders.size(); ++h) {
      const int first = holders.holders_with(holders.pick(h)).front();
      copying->group.push_back(first);
      if (first == h && plan.is_sequential(h)) copying->hashes.try_emplace(h);
    }
    open_[number] = std::move(copying);
  }

  void chunk(size_t number, const FilledChunk& filled, Turnstile& turns) {
    const TensorMove& move = moves_[number];
    Copying& copying = *open_[number];
    turns.in_order(filled.chunk->sequence, [&] { hash(copying, filled); });
    const i64 total = *byte_size(move.dtype, move.shape);
    std::uint64_t written = 0;
    for (const ChunkPlace& place : filled.chunk->output_places) {
      if (!place.counts) continue;
      written ^= digest_of(place, filled, total);
    }
    const i64 shared = write(move, filled);
    const std::lock_guard lock(copying.mutex);
    copying.read ^= filled.digest_read;
    copying.written ^= written;
    copying.bytes += filled.chunk->bytes;
    copying.shared += shared;
  }

  const CopiedTensor& end(size_t number) {
    const TensorMove& move = moves_[number];
    const std::unique_ptr<Copying> copying = std::move(open_[number]);
    CopiedTensor& done = done_[number];
    done.digest = copying->read;
    done.shared_bytes = copying->shared;
    done.is_whole = copying->bytes == *byte_size(move.dtype, move.shape);
    check_digests(move, *copying, done.is_whole);
    for (int h = 0; h < move.to.holders->size(); ++h) {
      const int first = copying->group[static_cast<size_t>(h)];
      done.xxh3.push_back(first == h ? hash_of(move, *copying, h)
                                     : done.xxh3[static_cast<size_t>(first)]);
    }
    return done;
  }

  std::vector<CopiedTensor> result() { return std::move(done_); }

 private:
  /// Every group of replicas once; replicas get their group's hash.
  void hash(Copying& copying, const FilledChunk& filled) {
    for (size_t i = 0; i < filled.outputs.size(); ++i) {
      const ChunkOutput& output = filled.chunk->outputs[i];
      for (const ChunkTarget& target : output.targets) {
        const auto found = copying.hashes.find(target.holder);
        if (found == copying.hashes.end()) continue;
        found->second.add(target.offset, {filled.outputs[i], static_cast<size_t>(output.bytes)});
      }
    }
  }

  std::string hash_of(const TensorMove& move, Copying& copying, int holder) const {
    const i64 bytes = holder_bytes(*move.to.holders, holder, move.dtype);
    const auto running = copying.hashes.find(holder);
    if (running != copying.hashes.end()) {
      running->second.skip_to(bytes);
      return running->second.hash.hex();
    }
    const Slot& slot = move.to.slots[static_cast<size_t>(holder)];
    // Written out of order: read back.
    return hash_range(targets_[static_cast<size_t>(slot.file)].path(), slot.offset, bytes);
  }

  static std::uint64_t digest_of(const ChunkPlace& place, const FilledChunk& filled, i64 total) {
    const auto output = static_cast<size_t>(place.range);
    const auto& crc = filled.crcs[output];
    if (crc && is_one_run(place.place, filled.chunk->outputs[output].bytes)) {
      return kernels::placed_crc64(
          place.place, [&crc](i64) { return *crc; }, total);
    }
    return kernels::placed_crc64(place.place, filled.outputs[output], total);
  }

  /// Returns how many bytes share the source's space.
  i64 write(const TensorMove& move, const FilledChunk& filled) {
    i64 shared = 0;
    for (size_t i = 0; i < filled.outputs.size(); ++i) {
      const ChunkOutput& output = filled.chunk->outputs[i];
      const std::span bytes(filled.outputs[i], static_cast<size_t>(output.bytes));
      const auto origin = origin_of(move, *filled.chunk, static_cast<int>(i));
      for (const ChunkTarget& target : output.targets) {
        const Slot& slot = move.to.slots[static_cast<size_t>(target.holder)];
        const TargetFile& file = targets_[static_cast<size_t>(slot.file)];
        const i64 offset = slot.offset + target.offset;
        if (origin && file.share(sources_[static_cast<size_t>(origin->file)], origin->offset, bytes,
                                 offset)) {
          shared += output.bytes;
        } else {
          file.write(bytes, offset);
        }
      }
    }
    return shared;
  }

  /// Where an output's bytes lie in a source file, when all of them lie there side by side.
  static std::optional<Slot> origin_of(const TensorMove& move, const Chunk& chunk, int output) {
    for (const ChunkCopy& copy : chunk.copies) {
      if (copy.output != output) continue;
      const bool is_all = copy.copy.loops.empty() &&
                          copy.copy.run == chunk.outputs[static_cast<size_t>(output)].bytes;
      if (!is_all) return std::nullopt;
      const ChunkInput& input = chunk.inputs[static_cast<size_t>(copy.input)];
      Slot at = move.from.slots[static_cast<size_t>(input.holder)];
      at.offset += input.offset + copy.copy.src;
      return at;
    }
    return std::nullopt;
  }

  static void check_digests(const TensorMove& move, const Copying& copying, bool is_whole) {
    if (copying.read != copying.written) {
      throw Error(ErrorCode::kDataMismatch,
                  "the bytes to be written are not the bytes that were read")
          .tensor(move.name)
          .note("read", fmt::format("{:016x}", copying.read))
          .note("to write", fmt::format("{:016x}", copying.written))
          .help(
              "this is a fault of the memory, of the processor or of shardtool: nothing was "
              "published");
    }
    if (is_whole && move.expected_digest && *move.expected_digest != copying.read) {
      throw Error(ErrorCode::kDataMismatch, "the data does not match the digest in the manifest")
          .tensor(move.name)
          .note("expected", fmt::format("{:016x}", *move.expected_digest))
          .note("found", fmt::format("{:016x}", copying.read))
          .help("a shard was changed or damaged after it was written: split the checkpoint again");
    }
  }

  std::span<const TensorMove> moves_;
  std::span<const SourceFile> sources_;
  std::span<const TargetFile> targets_;
  std::vector<std::unique_ptr<Copying>> open_;
  std::vector<CopiedTensor> done_;
};

}  // namespace

std::vector<CopiedTensor> copy(std::span<const TensorMove> moves,
                               std::span<const SourceFile> sources,
                               std::span<const TargetFile> targets, const StreamOptions& options,
                               const OnCopied& on_copied) {
  Copier copier(moves, sources, targets);
  stream(moves, sources, options,
         {[&](size_t move, const ChunkPlan& plan) { copier.begin(move, plan); },
          [&](size_t move, const FilledChunk& chunk, Turnstile& turns) {
            copier.chunk(move, chunk, turns);
          },
          [&](size_t move) {
            const CopiedTensor& copied = copier.end(move);
            if (on_copied) on_copied(move, copied);
          }});
  return copier.result();
}

}  // namespace shardtool::exec
