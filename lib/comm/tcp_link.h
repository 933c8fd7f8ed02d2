#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "shardtool/comm/frame.h"
#include "shardtool/comm/socket.h"

namespace shardtool::comm {

/// A connection to one process that never waits: what is to be sent stands in a queue, what has
/// arrived comes as frames.
class TcpLink {
 public:
  TcpLink() = default;
  explicit TcpLink(Socket socket) : socket_(std::move(socket)) {}

  /// Puts a frame into the queue; its number, from 1.
  std::uint64_t queue(FrameKind kind, std::uint64_t channel, std::string bytes);
  /// Sends as much of the queue as the system takes now.
  void flush();
  /// Frames that are complete with what has arrived by now.
  std::vector<Frame> read();
  /// Says that nothing more will be sent.
  void finish_sending() const;

  int fd() const { return socket_.fd(); }
  /// Neither closed by the other side nor never opened. What arrived before can still be read.
  bool is_open() const { return socket_.is_open() && !closed_; }
  bool has_queue() const { return is_open() && !queue_.empty(); }
  /// The number of the last frame that has left.
  std::uint64_t left() const { return left_; }
  /// Grows with every byte that is sent or arrives.
  std::uint64_t activity() const { return activity_; }

 private:
  struct Outgoing {
    std::string head;
    std::string bytes;
  };
  /// How many bytes of the first in the queue the system took, 0 when it takes none now.
  size_t send_some(const Outgoing& first);

  Socket socket_;
  FrameReader reader_;
  std::deque<Outgoing> queue_;
  size_t sent_ = 0;  ///< bytes of the first in the queue, its head included
  std::uint64_t queued_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t activity_ = 0;
  bool closed_ = false;
};

}  // namespace shardtool::comm
