#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/comm/tcp/address.h"

namespace shardtool::comm {

/// The time at which a wait is given up.
using Deadline = std::chrono::steady_clock::time_point;

/// Time until the deadline, at least 0, rounded up for poll(2).
int milliseconds_until(Deadline end);

/// Returns whether errno says that a call on a socket had nothing to do yet, and is to be repeated.
bool would_wait();

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

  /// Sends all bytes. False when the other side is gone, or has not taken them by `end`.
  bool send(std::string_view bytes, Deadline end) const;
  /// Receives exactly this many bytes; nothing when the other side is gone, or they have not come
  /// by `end`, however slowly they trickle.
  std::optional<std::string> receive(i64 bytes, Deadline end) const;
  /// Appends the bytes that are there, up to a size of `bytes`. False when the other side is gone.
  /// Does not wait.
  bool receive_some(std::string& received, i64 bytes) const;

 private:
  int fd_ = -1;
};

/// Sockets that listen, and the addresses at which they can be reached.
struct Listener {
  std::vector<Socket> sockets;
  std::vector<Address> addresses;
};
/// Listens on every interface, at a port that the system chooses. Throws kPeerLost when the system
/// refuses.
Listener listen();
/// Listens at the addresses of this host alone; port 0: one that the system chooses. Throws
/// kPeerLost when the host is unknown, is no address of this machine, or the port is taken.
Listener listen_at(const Address& address, Deadline end);

/// The next process that connects, a closed socket when the system has no room for one, nothing
/// when none waits. Does not wait.
std::optional<Socket> accept(const Socket& listening);
/// The numeric addresses of a host that is named; those of a numeric one are itself. Loopback
/// addresses are left out where the name has others. None for a name that nobody knows (yet), or
/// when the system's resolver has not answered by `end`.
std::vector<Address> resolved(const Address& address, Deadline end);
/// A connection, or a closed socket when there is none by `end`.
Socket connect(const Address& address, Deadline end);
/// The numeric address of this machine's end of a connection, with port 0.
Address own_end(const Socket& connection);

}  // namespace shardtool::comm
