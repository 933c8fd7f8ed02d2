#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/comm/counters.h"

namespace shardtool::comm {

class Communicator;

/// No deadline: processes that share files may wait for each other for hours.
inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

/// Message being sent. The communicator must outlive it; a message without a wait() may be lost
/// when the communicator ends.
class PendingSend {
 public:
  PendingSend() = default;
  PendingSend(PendingSend&&) = default;
  PendingSend& operator=(PendingSend&&) = default;
  /// Returns when the message has left; later calls return at once. Throws the error of sending.
  void wait();

 private:
  friend class Communicator;
  PendingSend(Communicator* comm, std::uint64_t ticket) : comm_(comm), ticket_(ticket) {}
  explicit PendingSend(Error failure) : failure_(std::move(failure)) {}

  Communicator* comm_ = nullptr;  ///< null after the message has left
  std::uint64_t ticket_ = 0;
  std::optional<Error> failure_;
};

/// The processes of one run, from the view of one of them. All of them call the same collective
/// operations in the same order, each from one thread at a time; stopping and aborting are allowed
/// from any thread.
///
///     barrier     returns when all have called it
///     send        messages from one process to another arrive in the order in which they were
///                 sent. It may wait for the other to receive, but takes in arriving messages
///                 meanwhile: two processes that both send first do not block each other,
///                 regardless of the amount
///     all_gather  r -> x[r]  becomes  r -> x[0], ..., x[size - 1]
///     all_to_all  r -> x[r][0], ..., x[r][size - 1]  becomes  r -> x[0][r], ..., x[size - 1][r]
///     split       one communicator for each color, its ranks ordered by (key, rank here)
///
/// Messages are bytes of any length, the same at every rank or not. Every operation throws
/// kPeerLost when another process that it waits for has ended, cannot be reached or is silent until
/// the deadline; the error with which a process aborted; kInternal when an argument is out of
/// range.
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
  /// Like send, but returns at once; wait() throws the errors.
  PendingSend send_async(int to, std::string bytes);

  /// Values of all processes in rank order, in every process. A collective built on this one passes
  /// its own name for counters and messages.
  std::vector<std::string> all_gather(std::string_view mine,
                                      Operation counted_as = Operation::kAllGather);
  /// Value of rank `from` in every process; the values of other ranks are ignored.
  std::string broadcast(int from, std::string bytes);
  /// Parts that all processes gave for this rank, in rank order. `to_each` has an entry per rank.
  std::vector<std::string> all_to_all(std::vector<std::string> to_each,
                                      Operation counted_as = Operation::kAllToAll);
  /// True if the engine adds numbers of this type itself: NCCL.
  virtual bool has_native_sums(Dtype) const { return false; }
  /// Replaces `values` by their sum over all processes, element by element, with the engine's own
  /// all_reduce: in its order, rounded to `type` as it rounds. Every process gives as many. Throws
  /// kInternal without has_native_sums(type). For sums with the same bits on every engine see
  /// reduce.h.
  void native_all_reduce(Dtype type, std::span<std::byte> values);
  /// Returns this process' of size() equal ranges of that sum, with the engine's own
  /// reduce_scatter. The number of values is a multiple of size(), else kInternal.
  std::string native_reduce_scatter(Dtype type, std::string_view values);
  /// Communicator of the processes with the same color; null for a negative color. All processes
  /// take part. This communicator must outlive the result.
  std::unique_ptr<Communicator> split(int color, int key);

  /// Ends the run: current waits and later operations of every process throw the error; the first
  /// one wins. Adds a note that names this process, unless the error names one: kPeerLost does so
  /// in its message. All parts of a split end.
  virtual void abort(Error& error) noexcept;

  /// Throws the error when any process aborted the run, as waiting would. Does not wait.
  virtual void require_others() = 0;

  /// Sets how long an operation waits for a process that it needs and that gives no sign of itself:
  /// in the first operation of this communicator, and later; half as long again when that process
  /// itself waits for others. Processes that compute are waited for as long as they do, except in
  /// operations of NCCL. Earlier splits keep their deadlines.
  void set_deadline(std::chrono::milliseconds first, std::chrono::milliseconds later);
  const Counters& counters() const { return counters_; }

  /// Asks the other processes to stop their work. Does not wait, and never throws.
  virtual void raise_stop() noexcept = 0;
  /// True if some process raised a stop, aborted, or has ended. Does not wait.
  virtual bool stop_was_raised() = 0;

 protected:
  /// Sequence of messages between two processes, independent of other channels.
  using Channel = std::uint64_t;
  using Ticket = std::uint64_t;
  using Clock = std::chrono::steady_clock;

  Communicator(int rank, int size) : rank_(rank), size_(size) {}

  // Operations that an implementation provides. A peer is never the process itself; ranks are in
  // range.

  /// Queues a message. Does not wait.
  virtual Ticket do_post(int to, Channel channel, std::string bytes) = 0;
  /// Waits until the message has left, taking in arriving messages meanwhile.
  virtual void do_finish(Ticket ticket) = 0;
  virtual std::string do_receive(int from, Channel channel) = 0;
  virtual void do_abort(const Error& error) noexcept = 0;

  // Operations with a default over point-to-point messages that an implementation may improve.

  virtual std::vector<std::string> do_all_gather(std::string_view mine);
  virtual std::string do_broadcast(int from, std::string bytes);
  virtual std::vector<std::string> do_all_to_all(std::vector<std::string> to_each);
  virtual void do_native_all_reduce(Dtype type, std::span<std::byte> values);
  virtual std::string do_native_reduce_scatter(Dtype type, std::string_view values);
  /// Creates the group of `members`: ranks here, in the order of the new ranks, this one among
  /// them. Channels from `first` on are free.
  virtual std::unique_ptr<Communicator> do_split(std::vector<int> members, Channel first);
  virtual Channel& next_channel() { return next_channel_; }
  /// Error of a wait for this process, if it has ended and require_others() has seen that.
  virtual std::optional<Error> loss(int /*peer*/) { return std::nullopt; }

  /// Current operation, for messages.
  std::string_view operation_name() const { return name_of(current_.operation); }
  /// End of a wait that begins, or had a sign of life, now; nullopt: no end.
  std::optional<Clock::time_point> wait_end() const;
  /// Half of the deadline: a waiting process then asks whether its peer waits, too. A process that
  /// waits for a waiting process gives up later than that one, which knows the silent process.
  std::chrono::milliseconds half_patience() const { return current_.patience / 2; }
  /// Message that a process is silent.
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
  void require_native_sums(Dtype type) const;

  const int rank_;
  const int size_;
  Counters counters_;
  Current current_;
  bool is_first_ = true;
  std::chrono::milliseconds first_{120'000};
  std::chrono::milliseconds later_{30'000};
  Channel base_ = 0;          ///< first of two channels: point-to-point messages, and collectives
  Channel next_channel_ = 2;  ///< lowest channel that no split has taken, as far as this process
                              ///< knows
  std::deque<std::string> to_self_;
};

/// Communicator of a single process.
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
  void do_abort(const Error& error) noexcept override;

 private:
  std::optional<Error> aborted_;
  bool stopped_ = false;
};

}  // namespace shardtool::comm
