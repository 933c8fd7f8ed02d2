#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/message_communicator.h"
#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// A TCP connection; the other process has ended when it is closed.
class TcpLink final : public MessageLink {
 public:
  explicit TcpLink(Socket socket) : socket_(std::move(socket)) {}

  std::vector<Frame> pump() override;
  std::uint64_t left() const override { return left_; }
  std::uint64_t activity() const override { return activity_; }
  bool has_ended() const override { return closed_; }

  /// Says that nothing more will be sent.
  void finish_sending() const;
  int fd() const { return socket_.fd(); }

 protected:
  /// Small messages go at once.
  void enqueue(std::string head, std::string bytes) override;

 private:
  struct Outgoing {
    std::string head;
    std::string bytes;
  };
  void flush();
  /// How many bytes of the first in the queue the system took, 0 when it takes none now.
  size_t send_some(const Outgoing& first);

  Socket socket_;
  FrameReader reader_;
  std::deque<Outgoing> queue_;
  size_t sent_ = 0;  ///< bytes of the first in the queue, its head included
  std::uint64_t left_ = 0;
  std::uint64_t activity_ = 0;
  bool closed_ = false;
};

}  // namespace shardtool::comm
