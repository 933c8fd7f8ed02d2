#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/message_communicator.h"
#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// TCP connection; the other process has ended when it is closed.
class TcpLink final : public MessageLink {
 public:
  explicit TcpLink(Socket socket) : socket_(std::move(socket)) {}

  std::vector<Frame> pump() override;
  std::uint64_t left() const override { return left_; }
  std::uint64_t activity() const override { return activity_; }
  bool has_ended() const override { return closed_; }

  /// Ends sending on this connection.
  void finish_sending() const;
  int fd() const { return socket_.fd(); }

 protected:
  /// Sends at once as much as the system takes.
  void enqueue(std::string head, std::string bytes) override;

 private:
  struct Outgoing {
    std::string head;
    std::string bytes;
  };
  void flush();
  /// Bytes of the first queue entry that the system took; 0 if it takes none now.
  size_t send_some(const Outgoing& first);

  Socket socket_;
  FrameReader reader_;
  std::deque<Outgoing> queue_;
  size_t sent_ = 0;  ///< bytes sent of the first queue entry, its head included
  std::uint64_t left_ = 0;
  std::uint64_t activity_ = 0;
  bool closed_ = false;
};

}  // namespace shardtool::comm
