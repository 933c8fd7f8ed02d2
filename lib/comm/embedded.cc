#include "lib/comm/embedded.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/comm/agreement.h"
#include "lib/comm/tcp/mailbox.h"

namespace shardtool::comm {
namespace {

/// State shared by the ranks. The mutex protects everything.
struct Hub {
  explicit Hub(int ranks)
      : mailboxes(static_cast<size_t>(ranks)), ended(mailboxes.size()), waiting(mailboxes.size()) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Mailbox> mailboxes;
  std::vector<bool> ended;
  std::vector<bool> waiting;
  std::optional<std::string> aborted;
  bool stopped = false;
};

class EmbeddedCommunicator final : public Communicator {
 public:
  EmbeddedCommunicator(Hub& hub, int rank, int size) : Communicator(rank, size), hub_(hub) {}

  ~EmbeddedCommunicator() override {
    const std::lock_guard lock(hub_.mutex);
    hub_.ended[static_cast<size_t>(rank())] = true;
    hub_.changed.notify_all();
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
    const std::lock_guard lock(hub_.mutex);
    throw_abort();
    hub_.mailboxes[static_cast<size_t>(to)].put(rank(), channel, std::move(bytes));
    hub_.changed.notify_all();
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
        const bool waits_too = hub_.waiting[static_cast<size_t>(from)];
        if (is_late || !waits_too) end_for(silence_of(from));
        is_late = true;
        *end += half_patience();
      }
      wait(lock, end);
    }
  }

  void do_abort(const std::string& reason) noexcept override {
    const std::lock_guard lock(hub_.mutex);
    if (!hub_.aborted) hub_.aborted = reason;
    hub_.changed.notify_all();
  }

 private:
  void throw_abort() const {
    if (hub_.aborted) throw Error(ErrorCode::kPeerLost, *hub_.aborted);
  }
  /// Waits for a change or the end of the time.
  void wait(std::unique_lock<std::mutex>& lock, const std::optional<Clock::time_point>& end) {
    const auto own = static_cast<size_t>(rank());
    hub_.waiting[own] = true;
    if (end) {
      hub_.changed.wait_until(lock, *end);
    } else {
      hub_.changed.wait(lock);
    }
    hub_.waiting[own] = false;
  }

  /// Aborts under the lock of the preceding check, so that no other rank finds this process busy.
  [[noreturn]] void end_for(const std::string& reason) {
    hub_.aborted = reason;
    hub_.changed.notify_all();
    throw Error(ErrorCode::kPeerLost, reason);
  }

  Hub& hub_;
};

/// Exception of a rank.
struct Failure {
  std::exception_ptr thrown;
  bool is_of_others = false;  ///< lost a peer, or was stopped
};

Failure run_rank(Hub& hub, int rank, int size, const std::function<void(Communicator&)>& body) {
  EmbeddedCommunicator comm(hub, rank, size);
  try {
    run_or_abort(comm, [&] { body(comm); });
  } catch (Error& error) {
    const bool of_others =
        error.code() == ErrorCode::kPeerLost || error.code() == ErrorCode::kInterrupted;
    error.note("process", fmt::format("{} of {}", rank, size));
    return {std::current_exception(), of_others};
  } catch (...) {
    return {std::current_exception(), false};
  }
  return {};
}

}  // namespace

void run_embedded(int ranks, const std::function<void(Communicator&)>& body) {
  Hub hub(ranks);
  std::vector<Failure> failures(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(
          [&, rank] { failures[static_cast<size_t>(rank)] = run_rank(hub, rank, ranks, body); });
    }
  }
  for (const bool of_others : {false, true}) {
    for (const Failure& failure : failures) {
      if (failure.thrown && failure.is_of_others == of_others) {
        std::rethrow_exception(failure.thrown);
      }
    }
  }
}

}  // namespace shardtool::comm
