#include "shardtool/comm/tcp_communicator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/comm/socket.h"
#include "shardtool/io/file.h"
#include "shardtool/io/syscalls.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr i64 kMaxMeetingBytes = 1 << 20;
constexpr milliseconds kPause{20};
constexpr milliseconds kConnectTime{2000};
constexpr char kData = 'D';
constexpr char kStop = 'S';
constexpr size_t kHeadBytes = 1 + sizeof(std::uint64_t);
constexpr std::string_view kWelcome = "welcome";

std::string head(char kind, std::uint64_t bytes) {
  std::string text(kHeadBytes, kind);
  std::memcpy(text.data() + 1, &bytes, sizeof bytes);
  return text;
}

Error peer_lost(std::string message) {
  return Error(ErrorCode::kPeerLost, std::move(message));
}

/// The process of rank 0 and its connections to all others, or another one and its connection to
/// that. A message is a kind, a length and so many bytes.
class TcpCommunicator final : public Communicator {
 public:
  TcpCommunicator(int rank, int size, std::vector<Socket> peers)
      : Communicator(rank, size), rank_(rank), size_(size), peers_(std::move(peers)) {}

  void raise_stop() noexcept override {
    const std::lock_guard lock(mutex_);
    spread_stop();
  }

  bool stop_was_raised() override {
    const std::lock_guard lock(mutex_);
    for (const Socket& peer : peers_) {
      if (stopped_) break;
      const auto next = peer.peek();
      const bool is_stop = next && *next == kStop;
      if (is_stop) static_cast<void>(peer.receive(kHeadBytes));
      if (is_stop || !next) spread_stop();  // at rank 0, the others hear of it from here
    }
    return stopped_;
  }

 protected:
  std::vector<std::string> do_all_gather(std::string_view mine) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all = collect(std::string(mine));
    if (rank_ == 0) {
      for (int peer = 1; peer < size_; ++peer) {
        for (const std::string& one : all) send(peer, one);
      }
      return all;
    }
    for (int i = 0; i < size_; ++i) all.push_back(receive(0));
    return all;
  }

  std::vector<std::string> do_gather(std::string_view mine) override {
    const std::lock_guard lock(mutex_);
    return collect(std::string(mine));
  }

  Ticket do_post(int, Channel, std::string) override { throw not_connected(); }
  void do_finish(Ticket) override { throw not_connected(); }
  std::string do_receive(int, Channel) override { throw not_connected(); }
  void do_abort(const std::string&) noexcept override { raise_stop(); }

 private:
  static Error not_connected() {
    return {ErrorCode::kUnsupported, "processes over TCP send nothing to one another yet"};
  }

  /// Everybody's at rank 0, nothing elsewhere.
  std::vector<std::string> collect(const std::string& mine) {
    std::vector<std::string> all;
    if (rank_ != 0) {
      send(0, mine);
      return all;
    }
    all.push_back(mine);
    for (int peer = 1; peer < size_; ++peer) all.push_back(receive(peer));
    return all;
  }

  const Socket& socket_of(int peer) const {
    return peers_[rank_ == 0 ? static_cast<size_t>(peer - 1) : 0];
  }

  void send(int peer, const std::string& bytes) {
    const Socket& socket = socket_of(peer);
    if (!socket.send(head(kData, bytes.size())) || !socket.send(bytes)) lost(peer);
  }

  std::string receive(int peer) {
    while (true) {
      const auto start = socket_of(peer).receive(kHeadBytes);
      if (!start) lost(peer);
      if (start->front() == kStop) {
        stopped_ = true;
        continue;
      }
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, start->data() + 1, sizeof bytes);
      auto content = socket_of(peer).receive(static_cast<i64>(bytes));
      if (!content) lost(peer);
      return *std::move(content);
    }
  }

  [[noreturn]] void lost(int peer) {
    spread_stop();
    throw peer_lost(fmt::format("process {} of {} ended without a word", peer, size_));
  }

  void spread_stop() noexcept {
    if (std::exchange(stopped_, true)) return;
    std::array<char, kHeadBytes> stop{kStop};
    for (const Socket& peer : peers_) peer.send({stop.data(), stop.size()});
  }

  int rank_;
  int size_;
  std::vector<Socket> peers_;  ///< at rank 0 those of ranks 1, 2, ...; elsewhere that of rank 0
  std::mutex mutex_;
  bool stopped_ = false;
};

std::string secret_word() {
  std::array<unsigned char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    throw peer_lost("the system has no random bytes for the processes to know each other by");
  }
  std::string word;
  for (const unsigned char byte : random) word += fmt::format("{:02x}", byte);
  return word;
}

/// A file that only this user may read, complete as soon as it has its name; deleted at the end.
class MeetingFile {
 public:
  MeetingFile(std::string path, const std::string& text) : path_(std::move(path)) {
    const std::string whole = path_ + ".new";
    io::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
    {
      const io::File file = io::create_new(whole);
      ::fchmod(file.fd(), S_IRUSR | S_IWUSR);
      io::write_exact(file, std::as_bytes(std::span(text)), 0);
    }
    if (io::syscalls().rename(whole.c_str(), path_.c_str()) == 0) return;
    io::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
    throw Error(ErrorCode::kWriteFailed, "cannot name the file over which the processes meet")
        .at({path_, 0, 0, {}});
  }
  ~MeetingFile() { io::syscalls().unlinkat(AT_FDCWD, path_.c_str(), 0); }
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::string path_;
};

milliseconds left_until(Clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - Clock::now()));
}

/// The word, the rank and the size, in a fixed width.
std::string greeting(const std::string& word, int rank, int size) {
  return fmt::format("{} {:>8} {:>8}", word, rank, size);
}

std::optional<std::string> receive_soon(const Socket& socket, i64 bytes) {
  socket.limit_waiting(kConnectTime);
  auto received = socket.receive(bytes);
  socket.limit_waiting(milliseconds(0));
  return received;
}

/// The rank of a process that knows the word, or nothing.
std::optional<int> greeted_rank(const Socket& socket, const std::string& word, int size) {
  const auto text = receive_soon(socket, std::ssize(greeting(word, 0, 0)));
  if (!text || !text->starts_with(word)) return std::nullopt;
  std::istringstream numbers(text->substr(word.size()));
  int rank = 0;
  int its_size = 0;
  numbers >> rank >> its_size;
  if (numbers.fail() || its_size != size || rank < 1 || rank >= size) return std::nullopt;
  return rank;
}

std::string meeting_text(const Listener& listener, const std::string& word) {
  std::string text = word + "\n";
  for (const Address& address : listener.addresses) {
    text += fmt::format("{} {}\n", address.host, address.port);
  }
  return text;
}

std::vector<Socket> receive_all(const std::string& path, int size, Clock::time_point end) {
  const Listener listener = listen();
  const std::string word = secret_word();
  const MeetingFile file(path, meeting_text(listener, word));
  std::vector<Socket> peers(static_cast<size_t>(size - 1));
  for (int here = 1; here < size;) {
    const milliseconds left = left_until(end);
    if (left.count() == 0) {
      throw peer_lost(fmt::format("only {} of {} processes have begun", here, size));
    }
    Socket socket = accept(listener, left);
    if (!socket.is_open()) continue;
    const auto rank = greeted_rank(socket, word, size);
    if (!rank || !socket.send(kWelcome)) continue;
    Socket& place = peers[static_cast<size_t>(*rank - 1)];
    here += place.is_open() ? 0 : 1;
    place = std::move(socket);
  }
  return peers;
}

/// A connection to whoever wrote this text, if he still listens.
Socket answer(const std::string& text, int rank, int size) {
  std::istringstream lines(text);
  std::string word;
  std::getline(lines, word);
  Address address;
  while (lines >> address.host >> address.port) {
    Socket socket = connect(address, kConnectTime);
    if (!socket.is_open() || !socket.send(greeting(word, rank, size))) continue;
    if (receive_soon(socket, std::ssize(kWelcome)) == kWelcome) return socket;
  }
  return {};
}

/// The file's text, or nothing while it is not there.
std::string text_at(const std::string& path) {
  try {
    return io::read_text(path, kMaxMeetingBytes);
  } catch (const Error&) {
    return {};
  }
}

Socket find_first(const std::string& path, int rank, int size, Clock::time_point end) {
  while (left_until(end).count() > 0) {
    Socket socket = answer(text_at(path), rank, size);
    if (socket.is_open()) return socket;
    std::this_thread::sleep_for(kPause);
  }
  throw peer_lost(fmt::format("process 0 of {} could not be reached", size))
      .note("looked for", path);
}

}  // namespace

std::unique_ptr<Communicator> meet(const std::string& meeting_file, int rank, int size,
                                   milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  std::vector<Socket> peers;
  if (rank == 0) {
    peers = receive_all(meeting_file, size, end);
  } else {
    peers.push_back(find_first(meeting_file, rank, size, end));
  }
  return std::make_unique<TcpCommunicator>(rank, size, std::move(peers));
}

}  // namespace shardtool::comm
