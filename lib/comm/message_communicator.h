#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/comm/tcp/frame.h"
#include "lib/comm/tcp/mailbox.h"

namespace shardtool::comm {

/// Non-blocking connection to one other process. Frames are numbered from 1 as they are queued,
/// leave in this order, and arrive in the order in which the peer queued them.
class MessageLink {
 public:
  virtual ~MessageLink() = default;

  /// Appends a frame to the queue and returns its number.
  std::uint64_t queue(FrameKind kind, std::uint64_t channel, std::string bytes) {
    std::string head = frame_head(kind, channel, bytes.size());
    enqueue(std::move(head), std::move(bytes));
    return ++queued_;
  }
  /// True if queued frames can still be sent.
  bool has_queue() const { return is_sending() && !has_ended(); }
  bool is_sending() const { return queued_ > left(); }

  /// Sends as much as possible now and returns the frames completed by the data received so far.
  virtual std::vector<Frame> pump() = 0;
  /// Number of the last frame that has left.
  virtual std::uint64_t left() const = 0;
  /// Counter that grows when data is sent or arrives, as a sign that the peer is alive.
  virtual std::uint64_t activity() const = 0;
  /// True if the other process has ended and everything that it sent has been taken.
  virtual bool has_ended() const = 0;

 protected:
  virtual void enqueue(std::string head, std::string bytes) = 0;

 private:
  std::uint64_t queued_ = 0;
};

/// Time that a failing process waits before it ends, so that the others can read the reason and
/// report it.
inline constexpr std::chrono::milliseconds kLastWords{500};

/// Communicator over links. One thread waits, outside the mutex; other threads may check for or
/// raise a stop at the same time. While none waits, a thread of its own answers processes that ask
/// whether this one lives: it may compute for minutes between two operations.
class MessageCommunicator : public Communicator {
 public:
  void require_others() override;
  void raise_stop() noexcept override;
  bool stop_was_raised() override;

 protected:
  using Links = std::vector<std::unique_ptr<MessageLink>>;

  /// Takes the links by rank; null: this process itself, and ranks without a link.
  MessageCommunicator(int rank, int size, Links links);

  /// Waits for a possible change, for the `looks`th time in a row. Called without the mutex.
  virtual void pause(int looks) = 0;

  Ticket do_post(int to, Channel channel, std::string bytes) override;
  void do_finish(Ticket ticket) override;
  std::string do_receive(int from, Channel channel) override;
  void do_abort(const Error& error) noexcept override;
  std::optional<Error> loss(int peer) override;

  /// Ends the answers. Called before the links can no longer be used.
  void end_answers() { answers_.clear(); }

  const Links& links() const { return links_; }
  bool was_aborted() const { return aborted_.has_value(); }
  std::mutex& mutex() { return mutex_; }

  // The following require the mutex.

  void pump();
  void spread(FrameKind kind, const std::string& bytes);
  void spread_abort(const Error& error) noexcept;
  bool any_queue() const;

 private:
  template <class Done>
  void wait_for(int peer, const Done& done);
  MessageLink& link_to(int peer);
  void accept(int from, Frame frame);
  void answer(const std::stop_token& stop);
  void throw_abort() const;
  void spread_stop() noexcept;
  [[noreturn]] void lost(int peer);

  std::mutex mutex_;
  Links links_;
  Mailbox mailbox_;
  std::optional<Error> aborted_;
  bool stopped_ = false;
  bool is_waiting_ = false;
  std::uint64_t busy_ = 0;  ///< answers so far of processes that compute
  std::condition_variable_any ended_;
  std::vector<std::jthread> answers_;  ///< at most one; last member: it uses those above
};

}  // namespace shardtool::comm
