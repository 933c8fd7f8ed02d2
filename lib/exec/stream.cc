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
#include <variant>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/exec/chunk_plans.h"
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

/// The chunks of a whole tensor come in their order.
class FreePassage final : public Turnstile {
 public:
  void in_order(i64 /*sequence*/, const std::function<void()>& pass) override { pass(); }
};

/// A tensor of several chunks that are being worked on.
struct InFlight {
  InFlight(size_t number, const ChunkPlan& chunks, StopSignal& stop)
      : move(number), plan(chunks), turns(stop) {}

  size_t move;
  const ChunkPlan& plan;
  ChunkPlan::Position last;  ///< that was handed out
  OrderedPassage turns;
  std::atomic<i64> open{1};  ///< chunks handed out and not finished, plus one while more may come
};

/// Tensors that are read, digested and written together.
struct WholeTensors {
  size_t first = 0;  ///< the number of the first move
  std::vector<const ChunkPlans::Entry*> plans;
};

/// One chunk of a tensor that has several.
struct Part {
  std::shared_ptr<InFlight> tensor;
  ChunkPlan::Position position;
};

using Work = std::variant<WholeTensors, Part>;

class Run {
 public:
  Run(const MoveList& moves, std::span<const SourceFile> sources, const StreamOptions& options,
      const ChunkSink& sink)
      : moves_(moves),
        sources_(sources),
        options_(options),
        sink_(sink),
        progress_(options.on_progress) {
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
    plans_ = ChunkPlans(limits_);
    for (size_t i = 0; i < moves.size(); ++i) progress_.expect(plans_.of(moves[i]).plan.bytes());
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
        std::visit([&](const auto& work) { process(work, reader); }, *next);
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void process(const WholeTensors& tensors, ChunkReader& reader) {
    std::vector<WantedChunk> wanted;
    for (size_t i = 0; i < tensors.plans.size(); ++i) {
      const size_t number = tensors.first + i;
      sink_.begin(number, tensors.plans[i]->plan);
      for (const Chunk& chunk : tensors.plans[i]->together) {
        wanted.push_back({number, &moves_[number], &chunk});
      }
    }
    FreePassage turns;
    pass_on(reader.fill(wanted, sources_), turns);
    for (size_t i = 0; i < tensors.plans.size(); ++i) sink_.end(tensors.first + i);
  }

  void process(const Part& part, ChunkReader& reader) {
    InFlight& tensor = *part.tensor;
    const TensorMove& move = moves_[tensor.move];
    try {
      const Chunk chunk = tensor.plan.chunk(part.position);
      const WantedChunk wanted{tensor.move, &move, &chunk};
      pass_on(reader.fill({&wanted, 1}, sources_), tensor.turns);
    } catch (Error& error) {
      throw error.tensor(move.name);
    }
    finish_one(tensor);
  }

  void pass_on(std::span<const FilledChunk> chunks, Turnstile& turns) {
    sink_.chunks(chunks, turns);
    i64 bytes = 0;
    for (const FilledChunk& filled : chunks) bytes += filled.chunk->bytes;
    progress_.add(bytes, chunks.back().move->name);
  }

  std::optional<Work> next_work() {
    const std::lock_guard lock(queue_mutex_);
    while (true) {
      if (current_) {
        Part part{current_, {}};
        if (current_->plan.next(current_->last)) {
          check_cancelled();
          part.position = current_->last;
          ++current_->open;
          return part;
        }
        // Also when the run is to stop: what is finished counts.
        finish_one(*std::exchange(current_, nullptr));
      }
      check_cancelled();
      if (next_move_ == moves_.size()) return std::nullopt;
      WholeTensors whole = next_whole_tensors();
      if (!whole.plans.empty()) return whole;
      const ChunkPlan& plan = plans_.of(moves_[next_move_]).plan;
      current_ = std::make_shared<InFlight>(next_move_, plan, stop_);
      sink_.begin(next_move_++, plan);
    }
  }

  /// As many as fit the buffers together.
  WholeTensors next_whole_tensors() {
    WholeTensors tensors{next_move_, {}};
    i64 arena_bytes = 0;
    i64 input_bytes = 0;
    for (; next_move_ < moves_.size(); ++next_move_) {
      const ChunkPlans::Entry& entry = plans_.of(moves_[next_move_]);
      arena_bytes += entry.arena_bytes;
      input_bytes += entry.input_bytes;
      const bool fits = arena_bytes <= limits_.arena_bytes && input_bytes <= limits_.input_bytes;
      if (entry.together.empty() || !fits) break;
      tensors.plans.push_back(&entry);
    }
    return tensors;
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

  const MoveList& moves_;
  std::span<const SourceFile> sources_;
  const StreamOptions& options_;
  const ChunkSink& sink_;
  int threads_ = 1;
  i64 arena_bytes_ = 0;
  ChunkLimits limits_;

  std::mutex queue_mutex_;
  ChunkPlans plans_{{}};
  size_t next_move_ = 0;
  std::shared_ptr<InFlight> current_;

  StopSignal stop_;
  std::exception_ptr failure_;

  ProgressMeter progress_;
};

}  // namespace

void check_moves(const MoveList& moves) {
  std::set<std::tuple<const void*, const void*, int>> checked;
  for (size_t i = 0; i < moves.size(); ++i) {
    const TensorMove& move = moves[i];
    const bool is_new =
        checked.insert({move.from.holders.get(), move.to.holders.get(), bits(move.dtype)}).second;
    if (is_new) check_move(move);
  }
}

void stream(const MoveList& moves, std::span<const SourceFile> sources,
            const StreamOptions& options, const ChunkSink& sink) {
  check_moves(moves);
  Run(moves, sources, options, sink).go();
  for (const SourceFile& source : sources) source.check_unchanged();
}

}  // namespace shardtool::exec
