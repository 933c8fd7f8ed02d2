#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/comm/tcp/frame.h"
#include "lib/comm/tcp/mailbox.h"

namespace shardtool::comm {

/// A way to one other process that never waits. Frames are numbered from 1 as they are queued,
/// leave in this order, and arrive in the order in which the other queued them.
class MessageLink {
 public:
  virtual ~MessageLink() = default;

  /// Puts a frame at the end of the queue; its number.
  std::uint64_t queue(FrameKind kind, std::uint64_t channel, std::string bytes) {
    std::string head = frame_head(kind, channel, bytes.size());
    enqueue(std::move(head), std::move(bytes));
    return ++queued_;
  }
  /// Something has not left yet, and may still.
  bool has_queue() const { return is_sending() && !has_ended(); }
  bool is_sending() const { return queued_ > left(); }

  /// Sends what can be sent now; the frames that are complete with what has arrived by now.
  virtual std::vector<Frame> pump() = 0;
  /// The number of the last frame that has left.
  virtual std::uint64_t left() const = 0;
  /// Grows with what is sent or arrives: the other side is alive.
  virtual std::uint64_t activity() const = 0;
  /// The other process has ended, and everything that it sent has been taken.
  virtual bool has_ended() const = 0;

 protected:
  virtual void enqueue(std::string head, std::string bytes) = 0;

 private:
  std::uint64_t queued_ = 0;
};

/// Before a process that fails ends: for the others to read why, and to say in their own words why
/// they end.
inline constexpr std::chrono::milliseconds kLastWords{500};

/// Processes with links between them. One thread waits, and not under the mutex; others look for a
/// stop or raise one at the same time.
class MessageCommunicator : public Communicator {
 public:
  void require_others() override;
  void raise_stop() noexcept override;
  bool stop_was_raised() override;

 protected:
  using Links = std::vector<std::unique_ptr<MessageLink>>;

  /// The links by rank; null: itself, and those to whom there is none.
  MessageCommunicator(int rank, int size, Links links);

  /// Until something may have changed, for the `looks`th time in a row. Without the mutex.
  virtual void pause(int looks) = 0;

  Ticket do_post(int to, Channel channel, std::string bytes) override;
  void do_finish(Ticket ticket) override;
  std::string do_receive(int from, Channel channel) override;
  void do_abort(const std::string& reason) noexcept override;

  const Links& links() const { return links_; }
  bool was_aborted() const { return aborted_.has_value(); }
  std::mutex& mutex() { return mutex_; }

  // Under the mutex.

  void pump();
  void spread(FrameKind kind, const std::string& bytes);
  void spread_abort(const std::string& reason) noexcept;
  bool any_queue() const;

 private:
  template <class Done>
  void wait_for(int peer, const Done& done);
  MessageLink& link_to(int peer);
  void accept(int from, Frame frame);
  void throw_abort() const;
  void spread_stop() noexcept;
  [[noreturn]] void lost(int peer);

  std::mutex mutex_;
  Links links_;
  Mailbox mailbox_;
  std::optional<std::string> aborted_;
  bool stopped_ = false;
  bool is_waiting_ = false;
};

}  // namespace shardtool::comm
