#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lib/exec/chunks/chunk_reader.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/move.h"
#include "lib/exec/resources.h"

namespace shardtool::exec {

/// The least max_memory that a run accepts.
inline constexpr i64 kMinMemory = 4 << 20;

/// Passes the chunks of one tensor one at a time in their order, on any thread.
class Turnstile {
 public:
  virtual ~Turnstile() = default;
  /// Calls `pass` when all earlier chunks of the tensor have passed. Throws kInterrupted when the
  /// run is being stopped.
  virtual void in_order(i64 sequence, const std::function<void()>& pass) = 0;
};

/// Consumer of the chunks of a run. `begin` and `end` of a tensor surround its chunks; all are
/// called from several threads at once, but only `chunks` concurrently for one tensor. `chunks`
/// receives several chunks when they are whole tensors, otherwise one.
struct ChunkSink {
  std::function<void(size_t move, const ChunkPlan& plan)> begin;
  std::function<void(std::span<const FilledChunk> chunks, Turnstile& turns)> chunks;
  std::function<void(size_t move)> end;
  Digests digests = Digests::kOfEverything;  ///< of the chunks
};

/// Runs check_move for every distinct pair of holder sets and element size.
void check_moves(const MoveList& moves);

/// Streams every tensor from its sources through memory, chunk by chunk, within the budget; small
/// tensors that follow each other are read together. The moves are checked (check_move) before the
/// first byte is read. The first error ends all threads and is thrown; so is kInterrupted once the
/// run is interrupted.
void stream(const MoveList& moves, std::span<const SourceFile> sources, const Resources& resources,
            const ChunkSink& sink);

/// The requests to object stores that stream() would send for these moves, none of them computed.
StoreReads store_reads(const MoveList& moves, std::span<const SourceFile> sources,
                       const Resources& resources);

}  // namespace shardtool::exec
