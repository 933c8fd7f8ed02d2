#include "shardtool/comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "shardtool/base/error.h"

namespace shardtool::comm {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kPieceBytes = 1 << 20;

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

/// Small messages go at once; a machine that vanished is noticed within a minute, also when it owes
/// an answer to what was sent: then it is not asked whether it lives (tcp(7), TCP_USER_TIMEOUT),
/// and the system would send again for a quarter of an hour.
void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

bool wait_for(int fd, short events, std::chrono::milliseconds time) {
  pollfd wanted{fd, events, 0};
  return ::poll(&wanted, 1, static_cast<int>(time.count())) > 0;
}

/// For both protocols, or for the older one where there is no other.
Socket bound_socket() {
  Socket both(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (both.is_open()) {
    set_option(both.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    if (::bind(both.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) return both;
  }
  Socket older(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  const bool bound =
      older.is_open() && ::bind(older.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
  return bound ? std::move(older) : Socket();
}

int port_of(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  // The port lies at the same place in both kinds of address.
  return ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
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

/// The numeric addresses of this machine; those that only it can use come last.
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
    return !host.starts_with("127.") && host != "::1" && !host.starts_with("fe80");
  });
  return hosts;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (is_open()) ::close(fd_);
}

bool Socket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<std::string> Socket::receive(i64 bytes) const {
  std::string received;
  while (std::ssize(received) < bytes) {
    const size_t at = received.size();
    received.resize(std::min(at + kPieceBytes, static_cast<size_t>(bytes)));
    const ssize_t got = ::recv(fd_, received.data() + at, received.size() - at, 0);
    received.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
  }
  return received;
}

void Socket::limit_waiting(std::chrono::milliseconds time) const {
  const timeval limit{time.count() / 1000, time.count() % 1000 * 1000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

std::optional<char> Socket::peek() const {
  char next = 0;
  const ssize_t got = ::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return next;
  const bool none_yet = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return none_yet ? std::optional<char>('\0') : std::nullopt;
}

Listener listen() {
  Listener listener{bound_socket(), {}};
  if (!listener.socket.is_open() || ::listen(listener.socket.fd(), kBacklog) != 0) {
    throw Error(ErrorCode::kPeerLost,
                fmt::format("cannot listen for the other processes: {}", std::strerror(errno)));
  }
  const int port = port_of(listener.socket);
  for (const std::string& host : own_hosts()) listener.addresses.push_back({host, port});
  return listener;
}

Socket accept(const Listener& listener, std::chrono::milliseconds time) {
  if (!wait_for(listener.socket.fd(), POLLIN, time)) return {};
  Socket socket(::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.is_open()) tune(socket.fd());
  return socket;
}

Socket connect(const Address& address, std::chrono::milliseconds time) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  if (::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  Socket socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.fd(), list->ai_addr, list->ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.fd(), POLLOUT, time)) return {};
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) return {};
  ::fcntl(socket.fd(), F_SETFL, ::fcntl(socket.fd(), F_GETFL) & ~O_NONBLOCK);
  tune(socket.fd());
  return socket;
}

}  // namespace shardtool::comm
