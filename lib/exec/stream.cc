#include "shardtool/exec/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/exec/progress_meter.h"
#include "shardtool/exec/workers.h"

namespace shardtool::exec {
namespace {

/// Larger blocks gain nothing and fall out of the cache (4 MiB is at the device's limit).
constexpr i64 kMaxInputBytes = 4 << 20;
constexpr i64 kMaxArenaBytes = 16 << 20;
constexpr i64 kMinArenaBytes = 1 << 20;

/// Wakes the threads that wait for a turn when the run is stopped.
struct StopSignal {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
};

class OrderedPassage final : public Turnstile {
 public:
  explicit OrderedPassage(StopSignal& stop) : stop_(&stop) {}

  void in_order(i64 sequence, const std::function<void()>& pass) override {
    {
      std::unique_lock lock(stop_->mutex);
      stop_->changed.wait(lock, [&] { return stop_->stopped || next_ == sequence; });
      if (stop_->stopped) throw Error(ErrorCode::kInterrupted, "the run was stopped");
    }
    pass();
    const std::lock_guard lock(stop_->mutex);
    ++next_;
    stop_->changed.notify_all();
  }

 private:
  StopSignal* stop_;
  i64 next_ = 0;
};

/// A tensor whose chunks are being worked on.
struct InFlight {
  InFlight(size_t number, const TensorMove& tensor, ChunkLimits limits, StopSignal& stop)
      : move(number), plan(tensor, limits), turns(stop) {}

  size_t move;
  ChunkPlan plan;
  OrderedPassage turns;
  std::atomic<i64> open{1};  ///< chunks handed out and not finished, plus one while more may come
};

struct Work {
  std::shared_ptr<InFlight> tensor;
  ChunkPlan::Position position;
};

i64 total_bytes(std::span<const TensorMove> moves) {
  i64 total = 0;
  for (const TensorMove& move : moves) total += byte_size(move.dtype, move.shape).value_or(0);
  return total;
}

class Run {
 public:
  Run(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
      const StreamOptions& options, const ChunkSink& sink)
      : moves_(moves),
        sources_(sources),
        options_(options),
        sink_(sink),
        progress_(options.on_progress, total_bytes(moves)) {
    if (options.max_memory < kMinMemory) {
      throw Error(ErrorCode::kMemoryBudget,
                  fmt::format("a memory budget of {} is below the minimum of {}",
                              format_bytes(options.max_memory), format_bytes(kMinMemory)));
    }
    const i64 wanted = options.threads > 0 ? options.threads : kDefaultThreads;
    threads_ = static_cast<int>(std::min<i64>(wanted, options.max_memory / kMinArenaBytes));
    arena_bytes_ = std::min(options.max_memory / threads_, kMaxArenaBytes);
    // Room for the staging buffer's page edges.
    limits_ = {arena_bytes_ - 4 * kPageBytes, std::min(kMaxInputBytes, arena_bytes_ / 3)};
  }

  void go() {
    {
      std::vector<std::jthread> workers;
      for (int i = 1; i < threads_; ++i) {
        // A machine that refuses threads is served by fewer.
        try {
          workers.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
          break;
        }
      }
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    progress_.finish();
  }

 private:
  void work() {
    try {
      ChunkReader reader(arena_bytes_, options_.digests);
      while (auto next = next_work()) {
        process(*next, reader);
        finish_one(*next->tensor);
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void process(const Work& work, ChunkReader& reader) {
    const TensorMove& move = moves_[work.tensor->move];
    try {
      const Chunk chunk = work.tensor->plan.chunk(work.position);
      const i64 total = *byte_size(move.dtype, move.shape);
      const FilledChunk filled = reader.fill(chunk, move, sources_, total);
      sink_.chunk(work.tensor->move, filled, work.tensor->turns);
      progress_.add(chunk.bytes, move.name);
    } catch (Error& error) {
      throw error.tensor(move.name);
    }
  }

  std::optional<Work> next_work() {
    const std::lock_guard lock(queue_mutex_);
    while (true) {
      if (!current_) {
        check_cancelled();
        if (next_move_ == moves_.size()) return std::nullopt;
        current_ = std::make_shared<InFlight>(next_move_, moves_[next_move_], limits_, stop_);
        sink_.begin(next_move_, current_->plan);
        ++next_move_;
      }
      Work work{current_, {}};
      if (current_->plan.next(work.position)) {
        check_cancelled();
        ++current_->open;
        return work;
      }
      // Also when the run is to stop: what is finished counts.
      finish_one(*std::exchange(current_, nullptr));
    }
  }

  void finish_one(InFlight& tensor) {
    if (--tensor.open == 0) sink_.end(tensor.move);
  }

  void check_cancelled() {
    const bool cancelled = options_.cancel && options_.cancel->load();
    const std::lock_guard lock(stop_.mutex);
    if (cancelled || stop_.stopped) throw Error(ErrorCode::kInterrupted, "interrupted");
  }

  /// Keeps the first failure that is not merely the echo of another thread's.
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(stop_.mutex);
    if (!stop_.stopped) failure_ = std::move(failure);
    stop_.stopped = true;
    stop_.changed.notify_all();
  }

  std::span<const TensorMove> moves_;
  std::span<const SourceFile> sources_;
  const StreamOptions& options_;
  const ChunkSink& sink_;
  int threads_ = 1;
  i64 arena_bytes_ = 0;
  ChunkLimits limits_;

  std::mutex queue_mutex_;
  size_t next_move_ = 0;
  std::shared_ptr<InFlight> current_;

  StopSignal stop_;
  std::exception_ptr failure_;

  ProgressMeter progress_;
};

}  // namespace

void check_moves(std::span<const TensorMove> moves) {
  std::set<std::tuple<const void*, const void*, int>> checked;
  for (const TensorMove& move : moves) {
    const bool is_new =
        checked.insert({move.from.holders.get(), move.to.holders.get(), bits(move.dtype)}).second;
    if (is_new) check_move(move);
  }
}

void stream(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
            const StreamOptions& options, const ChunkSink& sink) {
  check_moves(moves);
  Run(moves, sources, options, sink).go();
  for (const SourceFile& source : sources) source.check_unchanged();
}

}  // namespace shardtool::exec
