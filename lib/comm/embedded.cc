#include "lib/comm/embedded.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/interruption.h"
#include "lib/base/threads.h"
#include "lib/comm/agreement.h"
#include "lib/comm/tcp/mailbox.h"

namespace shardtool::comm {
namespace {

/// Reason of an abort for which there is no other text: short enough to need no memory itself.
constexpr const char* kNoMemory = "out of memory";

constexpr int kNobody = -1;

/// State shared by the ranks. The mutex protects everything.
struct Hub {
  explicit Hub(int ranks)
      : changed(static_cast<size_t>(ranks)),
        mailboxes(changed.size()),
        ended(changed.size()),
        awaited(changed.size(), kNobody) {}

  /// Wakes the ranks that wait.
  void wake_all() {
    for (std::condition_variable& one : changed) one.notify_all();
  }

  /// Waits until every rank has its thread; returns false if one has none.
  bool all_begin() {
    const std::lock_guard lock(mutex);
    return begins;
  }

  std::mutex mutex;
  std::vector<std::condition_variable> changed;  ///< one per rank: a message wakes one thread
  std::vector<Mailbox> mailboxes;
  std::vector<bool> ended;
  std::vector<int> awaited;  ///< rank that each rank waits for; kNobody: it computes
  std::optional<Error> aborted;
  bool stopped = false;
  bool begins = true;  ///< false: a rank has no thread, and none runs
};

class EmbeddedCommunicator final : public Communicator {
 public:
  EmbeddedCommunicator(Hub& hub, int rank, int size) : Communicator(rank, size), hub_(hub) {}

  ~EmbeddedCommunicator() override {
    const std::lock_guard lock(hub_.mutex);
    hub_.ended[static_cast<size_t>(rank())] = true;
    hub_.wake_all();
  }

  void require_others() override {
    const std::lock_guard lock(hub_.mutex);
    throw_abort();
  }

  void raise_stop() noexcept override {
    const std::lock_guard lock(hub_.mutex);
    hub_.stopped = true;
  }

  bool stop_was_raised() override {
    const std::lock_guard lock(hub_.mutex);
    for (const bool ended : hub_.ended) hub_.stopped = hub_.stopped || ended;
    return hub_.stopped || hub_.aborted;
  }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override {
    const auto box = static_cast<size_t>(to);
    bool is_awaited = false;
    {
      const std::lock_guard lock(hub_.mutex);
      throw_abort();
      hub_.mailboxes[box].put(rank(), channel, std::move(bytes));
      is_awaited = hub_.awaited[box] == rank();
    }
    // The other rank takes the lock as soon as it wakes.
    if (is_awaited) hub_.changed[box].notify_all();
    return 0;
  }

  void do_finish(Ticket) override {}

  std::string do_receive(int from, Channel channel) override {
    std::unique_lock lock(hub_.mutex);
    auto end = wait_end();
    bool is_late = false;
    while (true) {
      throw_abort();
      auto bytes = hub_.mailboxes[static_cast<size_t>(rank())].take(from, channel);
      if (bytes) return *std::move(bytes);
      if (hub_.ended[static_cast<size_t>(from)]) {
        end_for(fmt::format("process {} of {} ended before its share of {}", from, size(),
                            operation_name()));
      }
      if (end && Clock::now() >= *end) {
        const bool waits_too = hub_.awaited[static_cast<size_t>(from)] != kNobody;
        if (is_late || !waits_too) end_for(silence_of(from));
        is_late = true;
        *end += half_patience();
      }
      check_interrupted();
      wait(lock, from, end);
    }
  }

  void do_abort(const Error& error) noexcept override {
    const std::lock_guard lock(hub_.mutex);
    try {
      if (!hub_.aborted) hub_.aborted = error;
    } catch (const std::bad_alloc&) {
      hub_.aborted.emplace(ErrorCode::kLimit, kNoMemory);
    }
    hub_.wake_all();
  }

 private:
  void throw_abort() const {
    if (hub_.aborted) throw *hub_.aborted;
  }
  /// Waits for a change, the end of the time, or the next glance.
  void wait(std::unique_lock<std::mutex>& lock, int from,
            const std::optional<Clock::time_point>& end) {
    const auto own = static_cast<size_t>(rank());
    const auto glance = Clock::now() + kInterruptionGlance;
    hub_.awaited[own] = from;
    hub_.changed[own].wait_until(lock, end ? std::min(*end, glance) : glance);
    hub_.awaited[own] = kNobody;
  }

  /// Aborts under the lock of the preceding check, so that no other rank finds this process busy.
  [[noreturn]] void end_for(const std::string& reason) {
    const Error loss(ErrorCode::kPeerLost, reason);
    hub_.aborted = loss;
    hub_.wake_all();
    throw loss;
  }

  Hub& hub_;
};

/// Reason why a rank ended, in the order in which they are told: others throw the error of the rank
/// that failed, or lose it.
enum class Cause { kOwn, kInterrupted, kOfOther };

/// Exception of a rank.
struct Failure {
  std::exception_ptr thrown;
  Cause cause = Cause::kOwn;
};

Cause cause_of(const Error& error, const Communicator& comm) {
  if (error.code() == ErrorCode::kInterrupted) return Cause::kInterrupted;
  const std::pair<std::string, std::string> own{"process",
                                                fmt::format("{} of {}", comm.rank(), comm.size())};
  return std::ranges::count(error.notes(), own) > 0 ? Cause::kOwn : Cause::kOfOther;
}

Failure run_rank(Communicator& comm, const std::function<void(Communicator&)>& body) noexcept {
  try {
    run_or_abort(comm, [&] { body(comm); });
  } catch (const Error& error) {
    return {std::current_exception(), cause_of(error, comm)};
  } catch (...) {
    return {std::current_exception(), Cause::kOwn};
  }
  return {};
}

}  // namespace

void run_embedded(int ranks, const std::function<void(Communicator&)>& body) {
  Hub hub(ranks);
  std::vector<std::unique_ptr<Communicator>> comms;
  for (int rank = 0; rank < ranks; ++rank) {
    comms.push_back(std::make_unique<EmbeddedCommunicator>(hub, rank, ranks));
    comms.back()->set_deadline(kForever, kForever);  // a thread ends, or it computes
  }
  std::vector<Failure> failures(comms.size());
  const auto run = [&](size_t rank) {
    const auto comm = std::move(comms[rank]);
    if (hub.all_begin()) failures[rank] = run_rank(*comm, body);
  };
  {
    std::vector<std::jthread> threads;
    const std::lock_guard lock(hub.mutex);  // no rank begins before all have their threads
    for (size_t rank = 0; rank < comms.size() && hub.begins; ++rank) {
      hub.begins = start_thread(threads, [&run, rank] { run(rank); });
    }
  }
  if (!hub.begins) {
    throw Error(ErrorCode::kLimit,
                fmt::format("the system refused a thread for each of {} ranks", ranks))
        .help(
            "lower the number of ranks, or raise the limits of threads and of memory "
            "(`ulimit -u`, `ulimit -v`, pids.max of the control group)");
  }
  for (const Cause cause : {Cause::kOwn, Cause::kInterrupted, Cause::kOfOther}) {
    for (const Failure& failure : failures) {
      if (failure.thrown && failure.cause == cause) std::rethrow_exception(failure.thrown);
    }
  }
}

}  // namespace shardtool::comm
