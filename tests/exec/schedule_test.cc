// The scheduler of `stream`, with threads as steps in an order that the test chooses: every
// interleaving of small runs, with a cancellation or a failure at every point, and random
// interleavings of larger ones.

#include "lib/exec/schedule.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::exec {
namespace {

/// Chunks per tensor. A tensor with 0 or kWhole chunks is moved whole; kWhole writes one chunk.
constexpr i64 kWhole = -1;

class ListedTensors final : public ScheduledTensors {
 public:
  explicit ListedTensors(std::vector<i64> chunks) : chunks_(std::move(chunks)) {}

  size_t size() const override { return chunks_.size(); }
  size_t whole_from(size_t tensor) override {
    constexpr size_t kMost = 2;
    size_t end = tensor;
    while (end < size() && end < tensor + kMost && chunks_[end] <= 0) ++end;
    return end - tensor;
  }
  i64 chunks(size_t tensor) override { return chunks_[tensor]; }
  i64 chunks_to_write(size_t tensor) const {
    return chunks_[tensor] == kWhole ? 1 : chunks_[tensor];
  }

 private:
  std::vector<i64> chunks_;
};

/// Next step of a thread of `stream`.
enum class Phase { kTakes, kHashes, kWrites, kReports, kHasEnded };

struct Thread {
  Phase phase = Phase::kTakes;
  Work work;

  auto operator<=>(const Thread&) const = default;
};

/// All state that a step can read or change.
struct State {
  Schedule schedule;
  std::vector<Thread> threads;
  std::vector<i64> turns;              ///< per tensor: number of hashed chunks
  std::vector<std::uint32_t> written;  ///< per tensor: a bit per written chunk
  std::vector<int> ends;               ///< per tensor: calls of `end`
  bool is_cancelled = false;
  bool has_failed = false;

  auto operator<=>(const State&) const = default;

  State(size_t thread_count, size_t tensors)
      : threads(thread_count), turns(tensors), written(tensors), ends(tensors) {}

  bool has_ended() const {
    return std::all_of(threads.begin(), threads.end(),
                       [](const Thread& thread) { return thread.phase == Phase::kHasEnded; });
  }
};

void write_chunk(State& state, size_t tensor, i64 chunk) {
  const std::uint32_t bit = 1U << static_cast<unsigned>(chunk);
  REQUIRE((state.written[tensor] & bit) == 0);
  state.written[tensor] |= bit;
}

void end_tensor(State& state, const ListedTensors& tensors, size_t tensor) {
  ++state.ends[tensor];
  REQUIRE(state.ends[tensor] == 1);
  REQUIRE(std::popcount(state.written[tensor]) == tensors.chunks_to_write(tensor));
}

void fail(State& state, Thread& thread) {
  state.schedule.stop();
  state.has_failed = true;
  thread = {Phase::kHasEnded, {}};
}

void take(State& state, Thread& thread, ListedTensors& tensors) {
  if (state.is_cancelled) return fail(state, thread);
  const auto work = state.schedule.next(tensors);
  thread = work ? Thread{Phase::kHashes, *work} : Thread{Phase::kHasEnded, {}};
}

/// Runs one step of a thread of `stream`. Returns false without effect if it must wait for another
/// thread.
bool step(State& state, size_t number, ListedTensors& tensors) {
  Thread& thread = state.threads[number];
  const auto* part = std::get_if<TensorPart>(&thread.work);
  const auto* whole = std::get_if<WholeTensors>(&thread.work);
  switch (thread.phase) {
    case Phase::kTakes:
      take(state, thread, tensors);
      return true;
    case Phase::kHashes:
      if (part && state.schedule.is_stopped()) {
        fail(state, thread);
        return true;
      }
      if (part && state.turns[part->tensor] != part->sequence) return false;
      if (part) ++state.turns[part->tensor];
      thread.phase = Phase::kWrites;
      return true;
    case Phase::kWrites:
      if (part) write_chunk(state, part->tensor, part->sequence);
      for (size_t t = 0; whole && t < whole->count; ++t) {
        for (i64 i = 0; i < tensors.chunks_to_write(whole->first + t); ++i) {
          write_chunk(state, whole->first + t, i);
        }
      }
      thread.phase = Phase::kReports;
      return true;
    case Phase::kReports:
      if (part && state.schedule.written(*part)) end_tensor(state, tensors, part->tensor);
      for (size_t t = 0; whole && t < whole->count; ++t) {
        end_tensor(state, tensors, whole->first + t);
      }
      thread = {};
      return true;
    case Phase::kHasEnded:
      return false;
  }
  return false;
}

/// Reading, hashing and writing may fail; taking and reporting cannot.
bool may_fail(const Thread& thread) {
  return thread.phase == Phase::kHashes || thread.phase == Phase::kWrites;
}

/// Checks that `end` was called for exactly the tensors with all chunks written.
void check_ended(const State& state, const ListedTensors& tensors) {
  const bool is_undisturbed = !state.is_cancelled && !state.has_failed;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const bool is_whole = std::popcount(state.written[t]) == tensors.chunks_to_write(t);
    // A tensor without chunks that was not taken is not checked.
    if (tensors.chunks_to_write(t) > 0) REQUIRE((state.ends[t] == 1) == is_whole);
    if (is_undisturbed) REQUIRE(state.ends[t] == 1);
  }
}

/// Visits every state that is reachable by any order of steps, failures and a cancellation.
class Explorer {
 public:
  Explorer(const std::vector<i64>& chunks, size_t threads)
      : tensors_(chunks), first_(threads, chunks.size()) {}

  /// Returns the number of states.
  size_t visit_all() {
    std::vector<State> open{first_};
    seen_.insert(first_);
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      if (state.has_ended()) {
        check_ended(state, tensors_);
        continue;
      }
      bool can_go_on = false;
      for (size_t t = 0; t < state.threads.size(); ++t) {
        State next = state;
        if (step(next, t, tensors_)) {
          can_go_on = true;
          add(std::move(next), open);
        }
        if (!may_fail(state.threads[t])) continue;
        State failed = state;
        fail(failed, failed.threads[t]);
        add(std::move(failed), open);
      }
      REQUIRE(can_go_on);  // no deadlock
      State cancelled = state;
      cancelled.is_cancelled = true;
      add(std::move(cancelled), open);
    }
    return seen_.size();
  }

 private:
  /// Threads are interchangeable: states that differ only in thread numbers are one state.
  void add(State state, std::vector<State>& open) {
    std::sort(state.threads.begin(), state.threads.end());
    if (seen_.insert(state).second) open.push_back(std::move(state));
  }

  ListedTensors tensors_;
  State first_;
  std::set<State> seen_;
};

TEST_CASE("a tensor ends if and only if all its chunks were written, in every order of 3 threads") {
  size_t states = 0;
  const std::vector<i64> kinds{kWhole, 0, 1, 2, 3, 4};
  for (const i64 a : kinds) {
    for (const i64 b : kinds) {
      for (const i64 c : kinds) states += Explorer({a, b, c}, 3).visit_all();
    }
  }
  MESSAGE("states: " << states);
  CHECK(states > 100'000);
}

TEST_CASE("a tensor ends if and only if all its chunks were written, in random orders of more") {
  CHECK(rc::check("end = all written", [] {
    const auto chunks = *rc::gen::container<std::vector<i64>>(gen::between(kWhole, 12));
    ListedTensors tensors(chunks);
    State state(static_cast<size_t>(*gen::between(1, 9)), chunks.size());
    const i64 fault_share = *gen::between(0, 2);
    while (!state.has_ended()) {
      const auto number = static_cast<size_t>(*gen::between(0, std::ssize(state.threads)));
      Thread& thread = state.threads[std::min(number, state.threads.size() - 1)];
      const i64 chance = fault_share == 0 ? 1 : *gen::between(0, 40);
      if (chance == 0 && may_fail(thread)) {
        fail(state, thread);
      } else if (chance == 0) {
        state.is_cancelled = true;
      } else {
        step(state, static_cast<size_t>(&thread - state.threads.data()), tensors);
      }
    }
    check_ended(state, tensors);
  }));
}

TEST_CASE("a chunk that nobody was given cannot be reported as written") {
  Schedule schedule;
  ListedTensors tensors({1});
  REQUIRE(schedule.next(tensors) == Work(TensorPart{0, 0}));
  CHECK(schedule.written({0, 0}));
  CHECK_ERROR(kInternal, schedule.written({0, 0}));
}

}  // namespace
}  // namespace shardtool::exec
