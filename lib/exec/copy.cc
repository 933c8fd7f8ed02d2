#include "lib/exec/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "kernels/digest/placed_crc64.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/chunks/cast_chunk.h"
#include "lib/exec/chunks/same_bytes.h"
#include "lib/exec/files/range_hash.h"

namespace shardtool::exec {
namespace {

/// Running hash of one destination's bytes, fed front to back; gaps are padding.
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
  /// Adds the padding up to `bytes`; requires that all other bytes were added.
  kernels::Hash128 finish(i64 bytes) {
    skip_to(bytes);
    return hash.value();
  }
};

/// Properties that destinations of tensors of one layout share.
struct Destination {
  int first_replica = 0;
  bool is_sequential = false;  ///< bytes come front to back; otherwise hashed after writing
  i64 bytes = 0;
  i64 bytes_to_come = 0;  ///< of these, all but the padding between rows

  static std::vector<Destination> of(const TensorMove& move, const ChunkPlan& plan) {
    std::vector<Destination> all;
    const index::HolderSet& holders = *move.to.holders;
    for (int h = 0; h < holders.size(); ++h) {
      all.push_back({holders.replicas(h).front(), plan.is_sequential(h),
                     holder_bytes(holders, h, move.result_dtype()), plan.bytes_to(h)});
    }
    return all;
  }
};

/// Number of bytes of one destination so far, and their hash if known.
struct Arrived {
  i64 bytes = 0;
  std::optional<kernels::Hash128> whole;  ///< set if they came in one piece
  std::unique_ptr<ShardHash> running;     ///< set if they come in several
};

/// Tensor between begin and end.
struct Copying {
  const std::vector<Destination>* destinations = nullptr;
  std::vector<Arrived> arrived;  ///< for the first replica of every destination
  std::mutex mutex;
  std::uint64_t read = 0;
  std::uint64_t written = 0;  ///< before the cast
  std::uint64_t result = 0;   ///< after the cast
  kernels::CastCounts cast;
  ComputedReport computed;
  i64 bytes = 0;          ///< bytes of the tensor, before the cast, that were written
  i64 bytes_to_come = 0;  ///< total bytes of its plan
  i64 shared = 0;
};

class Copier {
 public:
  Copier(const MoveList& moves, std::span<const SourceFile> sources,
         std::span<const TargetFile> targets)
      : moves_(moves),
        sources_(sources),
        targets_(targets),
        open_(moves.size()),
        done_(moves.size()) {}

  void begin(size_t number, const ChunkPlan& plan) {
    auto copying = std::make_unique<Copying>();
    copying->destinations = &destinations_of(moves_[number], plan);
    copying->arrived.resize(copying->destinations->size());
    copying->bytes_to_come = plan.bytes();
    open_[number] = std::move(copying);
    const TensorMove& move = moves_[number];
    for (int h = 0; h < move.to.holders->size(); ++h) {
      const Slot& slot = move.to.slots[static_cast<size_t>(h)];
      const TargetFile& file = targets_[static_cast<size_t>(slot.file)];
      if (!file.is_remote()) continue;  // a file has zeros where nothing was written
      plan.for_each_gap(h, [&](i64 offset, i64 bytes) { file.clear(slot.offset + offset, bytes); });
    }
  }

  void chunks(std::span<const FilledChunk> chunks, Turnstile& turns) {
    for (const FilledChunk& filled : chunks) digest(filled, turns);
    write(chunks);
    for (const FilledChunk& filled : chunks) {
      Copying& copying = *open_[filled.number];
      const std::lock_guard lock(copying.mutex);
      copying.bytes += filled.chunk->bytes;
    }
  }

  const CopiedTensor& end(size_t number) {
    const TensorMove& move = moves_[number];
    const std::unique_ptr<Copying> copying = std::move(open_[number]);
    CopiedTensor& done = done_[number];
    done.digest = move.cast_to ? copying->result : copying->read;
    if (move.cast_to) done.cast = {copying->cast, copying->read};
    done.shared_bytes = copying->shared;
    done.is_whole = copying->bytes == *byte_size(move.dtype, move.shape);
    check_all_came(move, *copying);
    check_digests(move, *copying, done.is_whole);
    if (move.computed) {
      if (done.is_whole) move.computed->check(copying->computed);
      done.computed = std::move(copying->computed);
    }
    done.xxh3.reserve(copying->destinations->size());
    for (size_t h = 0; h < copying->destinations->size(); ++h) {
      const auto first = static_cast<size_t>((*copying->destinations)[h].first_replica);
      if (!is_hashed(move, *copying, first)) done.unhashed.push_back(static_cast<int>(h));
      done.xxh3.push_back(first == h ? hash_of(move, *copying, h) : done.xxh3[first]);
    }
    return done;
  }

  std::vector<CopiedTensor> result() { return std::move(done_); }

 private:
  void digest(const FilledChunk& filled, Turnstile& turns) {
    Copying& copying = *open_[filled.number];
    std::uint64_t written = 0;
    for (const ChunkPlace& place : filled.chunk->output_places) {
      if (place.counts) written ^= digest_of(place, filled);
    }
    const kernels::CastCounts cast = cast_outputs(filled);
    const std::uint64_t result = result_digest(filled);
    turns.in_order(filled.chunk->sequence, [&] { hash(copying, filled); });
    const std::lock_guard lock(copying.mutex);
    copying.read ^= filled.digest_read;
    copying.written ^= written;
    copying.result ^= result;
    copying.cast += cast;
    if (filled.move->computed) copying.computed += filled.computed;
  }

  /// Digest of the elements as cast; 0 for a move without a cast.
  static std::uint64_t result_digest(const FilledChunk& filled) {
    const TensorMove& move = *filled.move;
    if (!move.cast_to) return 0;
    const i64 total = *byte_size(*move.cast_to, move.shape);
    std::uint64_t digest = 0;
    for (const ChunkPlace& place : filled.chunk->output_places) {
      if (!place.counts) continue;
      digest ^= kernels::placed_crc64(result_place(place.place, move),
                                      filled.results[static_cast<size_t>(place.range)], total);
    }
    return digest;
  }

  const std::vector<Destination>& destinations_of(const TensorMove& move, const ChunkPlan& plan) {
    const std::lock_guard lock(layouts_mutex_);
    const auto [found, is_new] = layouts_.try_emplace(&plan);
    if (is_new) found->second = Destination::of(move, plan);
    return found->second;
  }

  /// Hashes every group of replicas once; replicas share their group's hash.
  static void hash(Copying& copying, const FilledChunk& filled) {
    for (size_t i = 0; i < filled.outputs.size(); ++i) {
      for (const ChunkTarget& target : filled.chunk->outputs[i].targets) {
        const auto h = static_cast<size_t>(target.holder);
        const Destination& destination = (*copying.destinations)[h];
        if (destination.first_replica != target.holder) continue;
        const std::span<const std::byte> bytes = filled.result_of(i);
        Arrived& known = copying.arrived[h];
        known.bytes += std::ssize(bytes);
        if (!destination.is_sequential) continue;
        if (std::ssize(bytes) == destination.bytes) {
          known.whole = kernels::xxh3(bytes);
          continue;
        }
        if (!known.running) known.running = std::make_unique<ShardHash>();
        known.running->add(target.offset, bytes);
      }
    }
  }

  /// False for bytes that came out of order and cannot be read back yet.
  bool is_hashed(const TensorMove& move, const Copying& copying, size_t holder) const {
    const Slot& slot = move.to.slots[holder];
    return (*copying.destinations)[holder].is_sequential || copying.arrived[holder].whole ||
           !targets_[static_cast<size_t>(slot.file)].is_remote();
  }

  kernels::Hash128 hash_of(const TensorMove& move, Copying& copying, size_t holder) const {
    if (!is_hashed(move, copying, holder)) return {};
    const Destination& destination = (*copying.destinations)[holder];
    const Arrived& known = copying.arrived[holder];
    if (known.running) return known.running->finish(destination.bytes);
    if (known.whole) return *known.whole;
    if (destination.is_sequential) return ShardHash().finish(destination.bytes);  // all padding
    const Slot& slot = move.to.slots[holder];
    // Read back bytes that were written out of order.
    return hash_range(targets_[static_cast<size_t>(slot.file)].path(), slot.offset,
                      destination.bytes);
  }

  static std::uint64_t digest_of(const ChunkPlace& place, const FilledChunk& filled) {
    const auto output = static_cast<size_t>(place.range);
    const auto& crc = filled.crcs[output];
    if (crc && is_one_run(place.place, filled.chunk->outputs[output].bytes)) {
      return kernels::placed_crc64(
          place.place, [&crc](i64) { return *crc; }, filled.total_bytes);
    }
    return kernels::placed_crc64(place.place, filled.outputs[output], filled.total_bytes);
  }

  /// Bytes in memory to write to a file.
  struct Piece {
    int file = 0;
    i64 offset = 0;
    std::span<const std::byte> bytes;
    const TensorMove* move = nullptr;

    bool precedes(const Piece& next) const {
      return file == next.file && offset + std::ssize(bytes) == next.offset &&
             bytes.data() + bytes.size() == next.bytes.data();
    }
  };

  void write(std::span<const FilledChunk> chunks) {
    std::vector<Piece> pieces;
    for (const FilledChunk& filled : chunks) {
      for (size_t i = 0; i < filled.outputs.size(); ++i) share_or_collect(filled, i, pieces);
    }
    std::sort(pieces.begin(), pieces.end(), lies_before);
    for (size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
      Piece together = pieces[begin];
      for (end = begin + 1; end < pieces.size() && together.precedes(pieces[end]); ++end) {
        together.bytes = {together.bytes.data(), together.bytes.size() + pieces[end].bytes.size()};
      }
      try {
        targets_[static_cast<size_t>(together.file)].write(together.bytes, together.offset);
      } catch (Error& error) {
        throw error.tensor(together.move->name);
      }
    }
  }

  /// Shares the source's space, or collects the bytes for writing.
  void share_or_collect(const FilledChunk& filled, size_t output, std::vector<Piece>& pieces) {
    const TensorMove& move = *filled.move;
    const std::span<const std::byte> bytes = filled.result_of(output);
    const auto origin = origin_of(move, *filled.chunk, static_cast<int>(output));
    i64 shared = 0;
    for (const ChunkTarget& target : filled.chunk->outputs[output].targets) {
      const Slot& slot = move.to.slots[static_cast<size_t>(target.holder)];
      const i64 offset = slot.offset + target.offset;
      const TargetFile& file = targets_[static_cast<size_t>(slot.file)];
      if (origin &&
          file.share(sources_[static_cast<size_t>(origin->file)], origin->offset, bytes, offset)) {
        shared += std::ssize(bytes);
      } else {
        pieces.push_back({slot.file, offset, bytes, &move});
      }
    }
    if (shared == 0) return;
    Copying& copying = *open_[filled.number];
    const std::lock_guard lock(copying.mutex);
    copying.shared += shared;
  }

  /// Throws unless all bytes came: hashes and digests would cover other content.
  static void check_all_came(const TensorMove& move, const Copying& copying) {
    i64 came = copying.bytes;
    i64 to_come = copying.bytes_to_come;
    for (size_t h = 0; h < copying.arrived.size() && came == to_come; ++h) {
      const Destination& destination = (*copying.destinations)[h];
      if (destination.first_replica != static_cast<int>(h)) continue;
      came = copying.arrived[h].bytes;
      to_come = destination.bytes_to_come;
    }
    if (came == to_come) return;
    throw Error(ErrorCode::kInternal, "a tensor was about to be finished before all its bytes came")
        .tensor(move.name)
        .note("expected", format_bytes(to_come))
        .note("found", format_bytes(came));
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

  const MoveList& moves_;
  std::span<const SourceFile> sources_;
  std::span<const TargetFile> targets_;
  std::mutex layouts_mutex_;
  std::map<const ChunkPlan*, std::vector<Destination>> layouts_;
  std::vector<std::unique_ptr<Copying>> open_;
  std::vector<CopiedTensor> done_;
};

}  // namespace

std::vector<CopiedTensor> copy(const MoveList& moves, std::span<const SourceFile> sources,
                               std::span<const TargetFile> targets, const Resources& resources,
                               const OnCopied& on_copied) {
  Copier copier(moves, sources, targets);
  stream(
      moves, sources, resources,
      {[&](size_t move, const ChunkPlan& plan) { copier.begin(move, plan); },
       [&](std::span<const FilledChunk> chunks, Turnstile& turns) { copier.chunks(chunks, turns); },
       [&](size_t move) {
         const CopiedTensor& copied = copier.end(move);
         if (on_copied) on_copied(move, copied);
       }});
  return copier.result();
}

}  // namespace shardtool::exec
