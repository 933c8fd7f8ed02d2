#include "lib/comm/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/threads.h"

namespace shardtool::comm {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kPieceBytes = 1 << 20;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

/// Sends small messages at once and detects a vanished machine within a minute, even while data is
/// unacknowledged: keepalive probes are then not sent (tcp(7), TCP_USER_TIMEOUT), and the system
/// would retransmit for a quarter of an hour.
void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

/// End of a wait, or time of the next check for an interruption, if that is earlier.
Deadline next_glance(Deadline end) {
  return std::min(end, Deadline::clock::now() + kInterruptionGlance);
}

/// Waits until the socket is ready. False if it is not by `end`. Throws kInterrupted.
bool wait_for(int fd, short events, Deadline end) {
  const Deadline begin = Deadline::clock::now();
  while (true) {
    pollfd wanted{fd, events, 0};
    const int ready = ::poll(&wanted, 1, milliseconds_until(next_glance(end)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    check_interrupted(Deadline::clock::now() - begin);
    if (milliseconds_until(end) == 0) return false;
  }
}

/// Listening socket at the address, or a closed one with errno set.
Socket listening_socket(const sockaddr* address, socklen_t size, bool both_protocols) {
  Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (address->sa_family == AF_INET6) {
    set_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, both_protocols ? 0 : 1);
  }
  // The port has the same offset in both kinds of address.
  const bool chosen = reinterpret_cast<const sockaddr_in*>(address)->sin_port != 0;
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, chosen ? 1 : 0);
  if (::bind(socket.fd(), address, size) != 0) return {};
  if (::listen(socket.fd(), kBacklog) != 0) return {};
  return socket;
}

/// Listens for IPv6 and IPv4, or for IPv4 alone if IPv6 is unavailable.
Socket socket_on_every_interface() {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  Socket both = listening_socket(reinterpret_cast<sockaddr*>(&any), sizeof any, true);
  if (both.is_open()) return both;
  sockaddr_in older{};
  older.sin_family = AF_INET;
  return listening_socket(reinterpret_cast<sockaddr*>(&older), sizeof older, false);
}

int port_of(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  return ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
}

/// True for a connection whose ends are one socket. The system makes one of an attempt to reach a
/// port of this machine where nobody listens, if it takes that port for the own end.
bool is_joined_to_itself(const Socket& socket) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &own_size);
  ::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&other), &other_size);
  return own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

std::string numeric(const sockaddr* address) {
  const int family = address == nullptr ? AF_UNSPEC : address->sa_family;
  if (family != AF_INET && family != AF_INET6) return {};
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int result =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return result == 0 ? text.data() : "";
}

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1";
}

/// Numeric addresses of this machine; loopback and link-local ones come last.
std::vector<std::string> own_hosts() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<std::string> hosts;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (std::string host = numeric(entry->ifa_addr); !host.empty()) {
      hosts.push_back(std::move(host));
    }
  }
  std::stable_partition(hosts.begin(), hosts.end(), [](const std::string& host) {
    return !is_loopback(host) && !host.starts_with("fe80");
  });
  return hosts;
}

Error cannot_listen(const std::string& where, const std::string& why) {
  return {ErrorCode::kPeerLost,
          fmt::format("cannot listen for the other processes{}: {}", where, why)};
}

Error cannot_listen_at(const Address& address, int why) {
  Error error = cannot_listen(" at " + to_string(address), std::strerror(why));
  if (why == EADDRNOTAVAIL) {
    return std::move(error).help(
        "name an address of the machine on which process 0 runs, with --meeting tcp://HOST:PORT");
  }
  return std::move(error).help(
      "torchrun keeps MASTER_PORT for itself: name a free port, or a folder, with --meeting");
}

/// Resolver's list for a host: `flags` restricts it to numeric hosts; names may take long.
AddressList look_up(const Address& address, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  if (::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &list) != 0) list = nullptr;
  return {list, ::freeaddrinfo};
}

std::vector<Address> numeric_addresses(const addrinfo* list, int port) {
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    addresses.push_back({numeric(entry->ai_addr), port});
  }
  const auto only_here = std::stable_partition(
      addresses.begin(), addresses.end(), [](const Address& a) { return !is_loopback(a.host); });
  if (only_here != addresses.begin()) addresses.erase(only_here, addresses.end());
  return addresses;
}

}  // namespace

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int milliseconds_until(Deadline end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Deadline::clock::now());
  return static_cast<int>(std::clamp<i64>(left.count(), 0, std::numeric_limits<int>::max()));
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

bool Socket::send(std::string_view bytes, Deadline end) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (!would_wait() || !wait_for(fd_, POLLOUT, end))) return false;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

std::optional<std::string> Socket::receive(i64 bytes, Deadline end) const {
  std::string received;
  while (std::ssize(received) < bytes) {
    if (!wait_for(fd_, POLLIN, end) || !receive_some(received, bytes)) return std::nullopt;
  }
  return received;
}

bool Socket::receive_some(std::string& received, i64 bytes) const {
  const size_t at = received.size();
  received.resize(std::min(at + kPieceBytes, static_cast<size_t>(bytes)));
  const ssize_t got = ::recv(fd_, received.data() + at, received.size() - at, MSG_DONTWAIT);
  const bool none_yet = got < 0 && would_wait();
  received.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got > 0 || none_yet;
}

bool Socket::has_arrivals() const {
  pollfd wanted{fd_, POLLIN, 0};
  return ::poll(&wanted, 1, 0) > 0;
}

Listener listen() {
  Listener listener;
  listener.sockets.push_back(socket_on_every_interface());
  if (!listener.sockets.front().is_open()) throw cannot_listen("", std::strerror(errno));
  const int port = port_of(listener.sockets.front());
  for (const std::string& host : own_hosts()) listener.addresses.push_back({host, port});
  return listener;
}

Listener listen_at(const Address& address, Deadline end) {
  Listener listener;
  const auto addresses = resolved(address, end);
  int why = EADDRNOTAVAIL;
  for (const Address& one : addresses) {
    const AddressList list = look_up(one, AI_NUMERICHOST);
    if (!list) continue;
    Socket socket = listening_socket(list->ai_addr, list->ai_addrlen, false);
    if (!socket.is_open()) {
      why = errno;
      if (why == EADDRNOTAVAIL || why == EAFNOSUPPORT) continue;
      throw cannot_listen_at(one, why);
    }
    listener.addresses.push_back({one.host, port_of(socket)});
    listener.sockets.push_back(std::move(socket));
  }
  if (!listener.sockets.empty()) return listener;
  if (!addresses.empty()) throw cannot_listen_at(address, EADDRNOTAVAIL);
  throw cannot_listen(" at " + to_string(address), "no address of this host is known");
}

std::optional<Socket> accept(const Socket& listening) {
  Socket socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.is_open()) {
    tune(socket.fd());
    return socket;
  }
  const bool has_no_room =
      errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  return has_no_room ? std::optional(std::move(socket)) : std::nullopt;
}

std::vector<Address> resolved(const Address& address, Deadline end) {
  if (const AddressList numbers = look_up(address, AI_NUMERICHOST)) {
    return numeric_addresses(numbers.get(), address.port);
  }
  // The system's resolver has no deadline: a late lookup ends in its detached thread. This thread
  // waits for it if the system refuses another.
  const auto task = std::make_shared<std::packaged_task<std::vector<Address>()>>(
      [address] { return numeric_addresses(look_up(address, 0).get(), address.port); });
  std::future<std::vector<Address>> found = task->get_future();
  std::vector<std::jthread> resolver;
  if (start_thread(resolver, [task] { (*task)(); })) {
    resolver.front().detach();
  } else {
    (*task)();
  }
  const Deadline begin = Deadline::clock::now();
  while (found.wait_until(next_glance(end)) != std::future_status::ready) {
    check_interrupted(Deadline::clock::now() - begin);
    if (milliseconds_until(end) == 0) return {};
  }
  return found.get();
}

Socket connect(const Address& address, Deadline end) {
  const AddressList list = look_up(address, AI_NUMERICHOST);
  if (!list) return {};
  Socket socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.fd(), list->ai_addr, list->ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.fd(), POLLOUT, end)) return {};
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0 || is_joined_to_itself(socket)) return {};
  ::fcntl(socket.fd(), F_SETFL, ::fcntl(socket.fd(), F_GETFL) & ~O_NONBLOCK);
  tune(socket.fd());
  return socket;
}

Address own_end(const Socket& connection) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(connection.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  return {numeric(reinterpret_cast<sockaddr*>(&own)), 0};
}

}  // namespace shardtool::comm
