#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/comm/counters.h"

namespace shardtool::comm {

class Communicator;

/// No deadline: processes that share files may wait for each other for hours.
inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

/// A message on its way. The communicator must outlive it; a message that nobody waits for may be
/// lost when the communicator ends.
class PendingSend {
 public:
  PendingSend() = default;
  PendingSend(PendingSend&&) = default;
  PendingSend& operator=(PendingSend&&) = default;
  /// Returns when the message has left; at once when called again. Throws what sending failed with.
  void wait();

 private:
  friend class Communicator;
  PendingSend(Communicator* comm, std::uint64_t ticket) : comm_(comm), ticket_(ticket) {}
  explicit PendingSend(Error failure) : failure_(std::move(failure)) {}

  Communicator* comm_ = nullptr;  ///< null when it has left
  std::uint64_t ticket_ = 0;
  std::optional<Error> failure_;
};

/// The processes of one run, as one of them sees them. All of them call the same collective
/// operations in the same order, each from one thread at a time; stopping and aborting may come
/// from any thread.
///
///     barrier     returns when all have called it
///     send        messages from one process to another arrive in the order in which they were
///                 sent. It may wait for the other to receive, but takes in what arrives meanwhile:
///                 two that send to each other first, however much, do not block each other
///     all_gather  r -> x[r]  becomes  r -> x[0], ..., x[size - 1]
///     all_to_all  r -> x[r][0], ..., x[r][size - 1]  becomes  r -> x[0][r], ..., x[size - 1][r]
///     split       one communicator for each color, its ranks ordered by (key, rank here)
///
/// Messages are bytes of any length, the same at every rank or not. Every operation throws
/// kPeerLost when another process that it waits for has ended, cannot be reached, gives no sign of
/// itself within the deadline, or aborted; kInternal when an argument is out of range.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  void barrier();
  void send(int to, std::string_view bytes);
  std::string receive(int from);
  /// As send, but returns at once; what fails is thrown by wait().
  PendingSend send_async(int to, std::string bytes);

  /// What every process gives, in the order of ranks, in every process. A collective that is built
  /// on this one names itself, so that it is counted and named in messages as what it is.
  std::vector<std::string> all_gather(std::string_view mine,
                                      Operation counted_as = Operation::kAllGather);
  /// The same at rank 0 alone; nothing elsewhere.
  std::vector<std::string> gather(std::string_view mine);
  /// What rank `from` gives, in every process; what others give is not looked at.
  std::string broadcast(int from, std::string bytes);
  /// What every process gave for this one, in the order of ranks. `to_each` has an entry per rank.
  std::vector<std::string> all_to_all(std::vector<std::string> to_each,
                                      Operation counted_as = Operation::kAllToAll);
  /// Those that give the same color; null for those whose color is negative. All processes take
  /// part. This communicator must outlive what it was split into.
  std::unique_ptr<Communicator> split(int color, int key);

  /// Ends the run: whatever any process waits for or begins from now on throws kPeerLost with this
  /// process and the reason, the first that was given. All parts of a split end.
  virtual void abort(const std::string& reason) noexcept;

  /// Throws kPeerLost when the run was aborted, by whomever, as waiting would. Does not wait.
  virtual void require_others() = 0;

  /// How long an operation waits without a sign of a process that it needs: in the first operation
  /// of this communicator, and later; half as long again when that process waits for others itself.
  /// What was split off before keeps its own.
  void set_deadline(std::chrono::milliseconds first, std::chrono::milliseconds later);
  const Counters& counters() const { return counters_; }

  /// Tells the others to give up what they are doing. Does not wait, and never throws.
  virtual void raise_stop() noexcept = 0;
  /// Whether some process raised a stop, aborted, or has ended. Does not wait.
  virtual bool stop_was_raised() = 0;

 protected:
  /// Names a sequence of messages between two processes; those of different channels do not meet.
  using Channel = std::uint64_t;
  using Ticket = std::uint64_t;
  using Clock = std::chrono::steady_clock;

  Communicator(int rank, int size) : rank_(rank), size_(size) {}

  // What an implementation writes. The process itself is never a peer; ranks are in range.

  /// Takes a message to be sent. Does not wait.
  virtual Ticket do_post(int to, Channel channel, std::string bytes) = 0;
  /// Waits until it has left, taking in what arrives meanwhile.
  virtual void do_finish(Ticket ticket) = 0;
  virtual std::string do_receive(int from, Channel channel) = 0;
  virtual void do_abort(const std::string& reason) noexcept = 0;

  // What it may do better than by messages between two.

  virtual std::vector<std::string> do_all_gather(std::string_view mine);
  virtual std::vector<std::string> do_gather(std::string_view mine);
  virtual std::string do_broadcast(int from, std::string bytes);
  virtual std::vector<std::string> do_all_to_all(std::vector<std::string> to_each);
  /// `members` are ranks here, in the order of the new ranks, this one among them. Channels from
  /// `first` on are free.
  virtual std::unique_ptr<Communicator> do_split(std::vector<int> members, Channel first);
  virtual Channel& next_channel() { return next_channel_; }

  /// The operation under way, for messages.
  std::string_view operation_name() const { return name_of(current_.operation); }
  /// When a wait that begins now, or had a sign of life now, ends; nothing: never.
  std::optional<Clock::time_point> wait_end() const;
  /// Half of that time: when one that waits asks whether the other waits, too. Who waits for a
  /// process that waits for a third gives up later than that one, which knows who is silent.
  std::chrono::milliseconds half_patience() const { return current_.patience / 2; }
  /// Says that a process is silent.
  std::string silence_of(int peer) const;
  Channel collective_channel() const { return base_ + 1; }

 private:
  friend class GroupCommunicator;
  friend class PendingSend;

  struct Current {
    Operation operation = Operation::kBarrier;
    std::chrono::milliseconds patience{120'000};
  };

  void begin(Operation operation, i64 bytes);
  void require_rank(int rank) const;

  const int rank_;
  const int size_;
  Counters counters_;
  Current current_;
  bool is_first_ = true;
  std::chrono::milliseconds first_{120'000};
  std::chrono::milliseconds later_{30'000};
  Channel base_ = 0;          ///< of two channels: messages between two, and collectives
  Channel next_channel_ = 2;  ///< that no split has taken yet, as far as this process knows
  std::deque<std::string> to_self_;
};

/// A process on its own.
class SoloCommunicator final : public Communicator {
 public:
  SoloCommunicator() : Communicator(0, 1) {}
  void require_others() override;
  void raise_stop() noexcept override { stopped_ = true; }
  bool stop_was_raised() override { return stopped_ || aborted_; }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override;
  void do_finish(Ticket ticket) override;
  std::string do_receive(int from, Channel channel) override;
  void do_abort(const std::string& reason) noexcept override;

 private:
  std::optional<std::string> aborted_;
  bool stopped_ = false;
};

}  // namespace shardtool::comm
