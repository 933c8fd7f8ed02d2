#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/comm/tcp/address.h"

namespace shardtool::comm {

/// End of a wait.
using Deadline = std::chrono::steady_clock::time_point;

/// Time until the deadline, at least 0, rounded up for poll(2).
int milliseconds_until(Deadline end);

/// True if errno says that a socket call would block or was interrupted and should be repeated.
bool would_wait();

/// TCP socket owned by this process.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  /// Sends all bytes. False if the peer is gone, or has not taken them by `end`.
  bool send(std::string_view bytes, Deadline end) const;
  /// Receives exactly this many bytes; nullopt if the peer is gone, or they have not all arrived by
  /// `end`.
  std::optional<std::string> receive(i64 bytes, Deadline end) const;
  /// Appends available bytes, up to a size of `bytes`. False if the peer is gone. Does not wait.
  bool receive_some(std::string& received, i64 bytes) const;
  /// True if bytes have arrived, or the peer is gone. Does not wait.
  bool has_arrivals() const;

 private:
  int fd_ = -1;
};

/// Listening sockets and the addresses at which they can be reached.
struct Listener {
  std::vector<Socket> sockets;
  std::vector<Address> addresses;
};
/// Listens on every interface, at a port that the system chooses. Throws kPeerLost if the system
/// refuses.
Listener listen();
/// Listens only at the addresses of this host; port 0: the system chooses one. Throws kPeerLost if
/// the host is unknown, the address is not of this machine, or the port is taken.
Listener listen_at(const Address& address, Deadline end);

/// Accepts the next connection: a closed socket if the system has no room for one, nullopt if none
/// is pending. Does not wait.
std::optional<Socket> accept(const Socket& listening);
/// Numeric addresses of a host name; a numeric host resolves to itself. Drops loopback addresses if
/// the name has others. Empty for a name that is unknown (yet), or if the system's resolver has not
/// answered by `end`.
std::vector<Address> resolved(const Address& address, Deadline end);
/// Connects; returns a closed socket if that fails by `end`.
Socket connect(const Address& address, Deadline end);
/// Numeric address of this machine's end of a connection, with port 0.
Address own_end(const Socket& connection);

}  // namespace shardtool::comm
