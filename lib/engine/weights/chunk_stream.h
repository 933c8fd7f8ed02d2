#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/exec/page_buffer.h"

namespace shardtool::engine {

/// Rows that are to be read from a side.
struct ReadRequest {
  const WeightSource* source = nullptr;
  StoredRows rows;
  i64 bytes = 0;
};

/// Reads ahead of a computation: threads fill buffers in the order of the requests, which does not
/// depend on what is computed, and never hold more than the budget; a single larger request may.
class ChunkStream {
 public:
  /// `next` says what is read next; it is called from one thread at a time.
  ChunkStream(std::function<std::optional<ReadRequest>()> next, i64 budget_bytes, int threads);
  ~ChunkStream();
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  /// The bytes of the next request; valid until the next call. Throws what reading them threw, and
  /// kInternal when there is none.
  std::span<const std::byte> take();
  /// Of files, that were read for what was taken.
  i64 bytes_taken() const { return taken_; }

 private:
  /// Memory for a request, kept for others.
  struct Room {
    std::optional<exec::PageBuffer> pages;
    i64 bytes = 0;

    std::byte* at_least(i64 wanted);
  };
  struct Slot {
    ReadRequest request;
    Room room;
    const std::byte* bytes = nullptr;
    bool is_full = false;
    std::exception_ptr failure;
  };

  void work(const std::stop_token& stop);

  std::function<std::optional<ReadRequest>()> next_;
  i64 budget_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::unique_ptr<Slot>> slots_;  ///< in order; the first is the next to be taken
  std::vector<Room> spare_;
  std::unique_ptr<Slot> current_;
  i64 held_ = 0;
  i64 taken_ = 0;
  bool at_end_ = false;
  std::vector<std::jthread> threads_;  ///< last: they use what stands above
};

}  // namespace shardtool::engine
