#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardtool/base/checked.h"

namespace shardtool::comm {

/// Where a process listens: a numeric address, and a port.
struct Address {
  std::string host;
  int port = 0;
};

/// A TCP socket of our own.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  /// Sends all bytes. False when the other side is gone.
  bool send(std::string_view bytes) const;
  /// Receives exactly this many bytes, or nothing when the other side is gone first.
  std::optional<std::string> receive(i64 bytes) const;
  /// How long receive() waits for more before the other side counts as gone; 0: any time.
  void limit_waiting(std::chrono::milliseconds time) const;
  /// The next byte without taking it: 0 when there is none yet, nothing when the other side is
  /// gone. Does not wait.
  std::optional<char> peek() const;

 private:
  int fd_ = -1;
};

/// A socket that listens on every interface, at this port or for 0 at one that the system chooses,
/// and where it can be reached. Throws kPeerLost when the system refuses.
struct Listener {
  Socket socket;
  std::vector<Address> addresses;
};
Listener listen(int port = 0);

/// The next process that connects, or a closed socket when none does in time.
Socket accept(const Listener& listener, std::chrono::milliseconds time);
/// The numeric addresses of a host that is named; those of a numeric one are itself. None for a
/// name that nobody knows (yet).
std::vector<Address> resolved(const Address& address);
/// A connection, or a closed socket when there is none in time.
Socket connect(const Address& address, std::chrono::milliseconds time);

}  // namespace shardtool::comm
