#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/exec/files/page_buffer.h"

namespace shardtool::engine {

/// Rows to read from a side.
struct ReadRequest {
  const WeightSource* source = nullptr;
  StoredRows rows;
  i64 bytes = 0;
};

/// Read-ahead for a computation. Threads fill buffers in request order, which does not depend on
/// computed values. The memory of all buffers, whole pages and those that wait to be used again,
/// stays within the budget, except for the buffer that goes over it, and the one that is taken.
class ChunkStream {
 public:
  /// `next` returns the next request; it is called from one thread at a time. If the system refuses
  /// all of the threads, take() reads.
  ChunkStream(std::function<std::optional<ReadRequest>()> next, i64 budget_bytes, int threads);
  ~ChunkStream();
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  /// Returns the bytes of the next request, valid until the next call. Throws the errors of reading
  /// them, and kInternal if there is no request left.
  std::span<const std::byte> take();
  /// File bytes read for the requests taken so far.
  i64 bytes_taken() const { return taken_; }

 private:
  /// Reusable memory of a request.
  struct Room {
    i64 bytes = 0;
    std::optional<exec::PageBuffer> pages;  ///< allocated by the thread that fills it
  };
  struct Slot {
    ReadRequest request;
    Room room;
    const std::byte* bytes = nullptr;
    bool is_full = false;
    std::exception_ptr failure;
  };

  void work(const std::stop_token& stop);
  /// Reads the next request, or notes that there is none. The lock must be held; it is released
  /// while bytes are read.
  void read_next(std::unique_lock<std::mutex>& lock);
  Room room_for(i64 bytes);

  std::function<std::optional<ReadRequest>()> next_;
  i64 budget_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::unique_ptr<Slot>> slots_;  ///< in order; the first is taken next
  std::multimap<i64, Room> spare_;           ///< by bytes
  std::unique_ptr<Slot> current_;
  i64 held_ = 0;    ///< bytes of rooms in use
  i64 unused_ = 0;  ///< bytes of spare rooms
  i64 taken_ = 0;
  bool at_end_ = false;
  std::exception_ptr failure_;         ///< of the request after those in slots_
  std::vector<std::jthread> threads_;  ///< last member: they use those above
};

}  // namespace shardtool::engine
