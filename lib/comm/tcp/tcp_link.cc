#include "lib/comm/tcp/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace shardtool::comm {

void TcpLink::enqueue(std::string head, std::string bytes) {
  queue_.push_back({std::move(head), std::move(bytes)});
  flush();
}

size_t TcpLink::send_some(const Outgoing& first) {
  const size_t of_head = std::min(sent_, first.head.size());
  const size_t of_bytes = sent_ - of_head;
  std::array<iovec, 2> parts{
      iovec{const_cast<char*>(first.head.data()) + of_head, first.head.size() - of_head},
      iovec{const_cast<char*>(first.bytes.data()) + of_bytes, first.bytes.size() - of_bytes}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t sent = ::sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return static_cast<size_t>(std::max<ssize_t>(sent, 0));
}

void TcpLink::flush() {
  while (!closed_ && !queue_.empty()) {
    const Outgoing& first = queue_.front();
    const size_t sent = send_some(first);
    if (sent == 0) return;
    activity_ += sent;
    sent_ += sent;
    if (sent_ < first.head.size() + first.bytes.size()) continue;
    queue_.pop_front();
    sent_ = 0;
    ++left_;
  }
}

std::vector<Frame> TcpLink::pump() {
  flush();
  std::vector<Frame> frames;
  while (!closed_) {
    const std::span<char> room = reader_.room();
    const ssize_t got = ::recv(socket_.fd(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && would_wait()) break;
    if (got <= 0) {
      closed_ = true;
      break;
    }
    activity_ += static_cast<std::uint64_t>(got);
    reader_.filled(static_cast<size_t>(got));
    while (auto frame = reader_.take()) frames.push_back(*std::move(frame));
  }
  return frames;
}

void TcpLink::finish_sending() const {
  ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace shardtool::comm
