#include "lib/exec/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/exec/chunks/chunk_plans.h"
#include "lib/exec/progress_meter.h"
#include "lib/exec/schedule.h"
#include "lib/exec/workers.h"

namespace shardtool::exec {
namespace {

/// Larger blocks are no faster and exceed the cache (4 MiB reaches the device's limit).
constexpr i64 kMaxInputBytes = 4 << 20;
constexpr i64 kMaxArenaBytes = 16 << 20;
constexpr i64 kMinArenaBytes = 1 << 20;
/// Object stores answer late and to many at once: larger requests, and as many threads that wait
/// for one each as the budget has room for.
constexpr i64 kMaxRemoteInputBytes = 8 << 20;
constexpr i64 kRemoteArenaBytes = 3 * kMaxRemoteInputBytes + (1 << 20);
constexpr i64 kMaxRemoteThreads = 64;

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

/// Turnstile for chunks of a whole tensor, which come in order.
class FreePassage final : public Turnstile {
 public:
  void in_order(i64 /*sequence*/, const std::function<void()>& pass) override { pass(); }
};

/// Tensor whose chunks are being handed out.
struct InFlight {
  InFlight(const ChunkPlan& chunks, StopSignal& stop) : plan(chunks), turns(stop) {}

  const ChunkPlan& plan;
  ChunkPlan::Position last;  ///< the last one handed out
  OrderedPassage turns;
};

/// Tensors that are read, digested and written together.
struct Batch {
  WholeTensors place;
  std::vector<const ChunkPlans::Entry*> entries;
};

/// One chunk of a tensor that has several.
struct Part {
  TensorPart place;
  std::shared_ptr<InFlight> tensor;
  ChunkPlan::Position position;
};

/// View of the moves for the schedule.
class ScheduledMoves final : public ScheduledTensors {
 public:
  ScheduledMoves(const MoveList& moves, ChunkLimits limits)
      : moves_(moves), limits_(limits), plans_(limits) {}

  const ChunkPlans::Entry& entry(size_t tensor) { return plans_.of(moves_[tensor]); }

  size_t size() const override { return moves_.size(); }
  i64 chunks(size_t tensor) override { return entry(tensor).chunks; }
  /// Number of tensors that fit the buffers together.
  size_t whole_from(size_t tensor) override {
    i64 arena_bytes = 0;
    i64 input_bytes = 0;
    size_t end = tensor;
    for (; end < moves_.size(); ++end) {
      const ChunkPlans::Entry& next = entry(end);
      arena_bytes += next.arena_bytes;
      input_bytes += next.input_bytes;
      const bool fits = arena_bytes <= limits_.arena_bytes && input_bytes <= limits_.input_bytes;
      if (std::ssize(next.together) != next.chunks || !fits) break;
    }
    return end - tensor;
  }

 private:
  const MoveList& moves_;
  ChunkLimits limits_;
  ChunkPlans plans_;
};

using Task = std::variant<Batch, Part>;

class Run {
 public:
  Run(const MoveList& moves, std::span<const SourceFile> sources, const Resources& resources,
      const ChunkSink& sink)
      : moves_(moves),
        sources_(sources),
        resources_(resources),
        sink_(sink),
        is_remote_(std::ranges::any_of(sources, &SourceFile::is_remote)),
        budget_(is_remote_ ? resources.store_memory : resources.max_memory),
        threads_(thread_count()),
        arena_bytes_(std::min(budget_ / threads_, is_remote_ ? kRemoteArenaBytes : kMaxArenaBytes)),
        scheduled_(moves, limits()),
        progress_(resources.on_progress) {
    for (size_t i = 0; i < moves.size(); ++i) progress_.expect(scheduled_.entry(i).plan.bytes());
  }

  void go() {
    run_workers(threads_, [this](const std::atomic<bool>&) { work(); });
    if (failure_) std::rethrow_exception(failure_);
    progress_.finish();
  }

  /// The requests that go() would send.
  StoreReads store_reads() {
    ChunkReader reader(arena_bytes_, Digests::kNone);
    StoreReads reads;
    while (const auto next = next_task()) {
      reads.add(std::visit([&](const auto& task) { return reads_of(task, reader); }, *next));
    }
    return reads;
  }

 private:
  /// Throws kMemoryBudget.
  int thread_count() const {
    if (budget_ < kMinMemory) {
      throw Error(ErrorCode::kMemoryBudget,
                  fmt::format("a memory budget of {} is below the minimum of {}",
                              format_bytes(budget_), format_bytes(kMinMemory)));
    }
    const i64 chosen = is_remote_ ? std::clamp<i64>(budget_ / kRemoteArenaBytes, kDefaultThreads,
                                                    kMaxRemoteThreads)
                                  : kDefaultThreads;
    const i64 wanted = resources_.threads > 0 ? resources_.threads : chosen;
    return static_cast<int>(std::min<i64>(wanted, budget_ / kMinArenaBytes));
  }
  /// Leaves room for the staging buffer's page edges.
  ChunkLimits limits() const {
    const i64 most = is_remote_ ? kMaxRemoteInputBytes : kMaxInputBytes;
    return {arena_bytes_ - 4 * kPageBytes, std::min(most, arena_bytes_ / 3)};
  }

  void work() {
    try {
      ChunkReader reader(arena_bytes_, sink_.digests);
      while (const auto next = next_task()) {
        std::visit([&](const auto& task) { process(task, reader); }, *next);
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  std::vector<WantedChunk> wanted_of(const Batch& batch) const {
    std::vector<WantedChunk> wanted;
    for (size_t i = 0; i < batch.entries.size(); ++i) {
      const size_t tensor = batch.place.first + i;
      for (const Chunk& chunk : batch.entries[i]->together) {
        wanted.push_back({tensor, &moves_[tensor], &chunk});
      }
    }
    return wanted;
  }

  StoreReads reads_of(const Batch& batch, ChunkReader& reader) const {
    const std::vector<WantedChunk> wanted = wanted_of(batch);
    return wanted.empty() ? StoreReads() : reader.reads_of(wanted, sources_);
  }
  StoreReads reads_of(const Part& part, ChunkReader& reader) const {
    const Chunk chunk = part.tensor->plan.chunk(part.position);
    const WantedChunk wanted{part.place.tensor, &moves_[part.place.tensor], &chunk};
    return reader.reads_of({&wanted, 1}, sources_);
  }

  void process(const Batch& batch, ChunkReader& reader) {
    for (size_t i = 0; i < batch.entries.size(); ++i) {
      sink_.begin(batch.place.first + i, batch.entries[i]->plan);
    }
    const std::vector<WantedChunk> wanted = wanted_of(batch);
    FreePassage turns;
    if (!wanted.empty()) pass_on(reader.fill(wanted, sources_), turns);
    for (size_t i = 0; i < batch.place.count; ++i) sink_.end(batch.place.first + i);
  }

  void process(const Part& part, ChunkReader& reader) {
    const TensorMove& move = moves_[part.place.tensor];
    try {
      const Chunk chunk = part.tensor->plan.chunk(part.position);
      const WantedChunk wanted{part.place.tensor, &move, &chunk};
      pass_on(reader.fill({&wanted, 1}, sources_), part.tensor->turns);
    } catch (Error& error) {
      throw error.tensor(move.name);
    }
    if (is_complete_with(part.place)) sink_.end(part.place.tensor);
  }

  void pass_on(std::span<const FilledChunk> chunks, Turnstile& turns) {
    sink_.chunks(chunks, turns);
    i64 bytes = 0;
    for (const FilledChunk& filled : chunks) bytes += filled.chunk->bytes;
    progress_.add(bytes, chunks.back().move->name);
  }

  bool is_complete_with(const TensorPart& part) {
    const std::lock_guard lock(queue_mutex_);
    return schedule_.written(part);
  }

  std::optional<Task> next_task() {
    const std::lock_guard lock(queue_mutex_);
    check_interrupted();
    const std::optional<Work> work = schedule_.next(scheduled_);
    if (!work) return std::nullopt;
    if (const auto* part = std::get_if<TensorPart>(&*work)) return next_part(*part);
    Batch batch{std::get<WholeTensors>(*work), {}};
    for (size_t i = 0; i < batch.place.count; ++i) {
      batch.entries.push_back(&scheduled_.entry(batch.place.first + i));
    }
    return batch;
  }

  Part next_part(const TensorPart& place) {
    if (place.sequence == 0) {
      const ChunkPlan& plan = scheduled_.entry(place.tensor).plan;
      current_ = std::make_shared<InFlight>(plan, stop_);
      sink_.begin(place.tensor, plan);
    }
    if (!current_->plan.next(current_->last)) {
      throw Error(ErrorCode::kInternal, "a tensor has fewer chunks than its plan counts")
          .tensor(moves_[place.tensor].name);
    }
    return {place, current_, current_->last};
  }

  /// Ends all threads. Keeps the first failure, which may cause the others.
  void fail(std::exception_ptr failure) {
    {
      const std::lock_guard lock(queue_mutex_);
      schedule_.stop();
      if (!failure_) failure_ = std::move(failure);
    }
    const std::lock_guard lock(stop_.mutex);
    stop_.stopped = true;
    stop_.changed.notify_all();
  }

  const MoveList& moves_;
  std::span<const SourceFile> sources_;
  const Resources& resources_;
  const ChunkSink& sink_;
  bool is_remote_;
  i64 budget_;  ///< bytes of buffers, over all threads
  int threads_;
  i64 arena_bytes_;

  std::mutex queue_mutex_;  ///< guards the members up to stop_
  ScheduledMoves scheduled_;
  Schedule schedule_;
  std::shared_ptr<InFlight> current_;  ///< tensor whose chunks are being handed out
  std::exception_ptr failure_;

  StopSignal stop_;

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

StoreReads store_reads(const MoveList& moves, std::span<const SourceFile> sources,
                       const Resources& resources) {
  Resources quiet = resources;
  quiet.on_progress = nullptr;
  const ChunkSink nothing{[](size_t, const ChunkPlan&) {},
                          [](std::span<const FilledChunk>, Turnstile&) {}, [](size_t) {},
                          Digests::kNone};
  return Run(moves, sources, quiet, nothing).store_reads();
}

void stream(const MoveList& moves, std::span<const SourceFile> sources, const Resources& resources,
            const ChunkSink& sink) {
  check_moves(moves);
  Run(moves, sources, resources, sink).go();
  for (const SourceFile& source : sources) source.check_unchanged();
}

}  // namespace shardtool::exec
