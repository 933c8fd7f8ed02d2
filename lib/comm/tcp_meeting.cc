#include "shardtool/comm/tcp_meeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/io/file.h"
#include "shardtool/io/syscalls.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr i64 kMaxMeetingBytes = 1 << 20;
constexpr milliseconds kPause{20};
constexpr milliseconds kConnectTime{2000};
constexpr std::string_view kWelcome = "welcome";

Error peer_lost(std::string message) {
  return Error(ErrorCode::kPeerLost, std::move(message));
}

std::string secret_word() {
  std::array<unsigned char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    throw peer_lost("the system has no random bytes for the processes to know each other by");
  }
  std::string word;
  for (const unsigned char byte : random) word += fmt::format("{:02x}", byte);
  return word;
}

/// A file that only this user may read, complete as soon as it has its name; deleted at the end,
/// unless another launch has put its own there meanwhile.
class MeetingFile {
 public:
  MeetingFile(std::string path, const std::string& text) : path_(std::move(path)) {
    const std::string whole = path_ + ".new";  // one that a launch left behind goes
    io::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
    {
      const io::File file = io::create_new(whole);
      ::fchmod(file.fd(), S_IRUSR | S_IWUSR);
      own_ = io::identity(file);
      io::write_exact(file, std::as_bytes(std::span(text)), 0);
    }
    if (io::syscalls().rename(whole.c_str(), path_.c_str()) == 0) return;
    io::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
    throw Error(ErrorCode::kWriteFailed, "cannot name the file over which the processes meet")
        .at({path_, 0, 0, {}});
  }
  ~MeetingFile() {
    if (io::is_at(path_, own_)) io::syscalls().unlinkat(AT_FDCWD, path_.c_str(), 0);
  }
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::string path_;
  io::FileIdentity own_;
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

/// The rank of a process that knows the word and ranks above this one, or nothing.
std::optional<int> greeted_rank(const Socket& socket, const std::string& word, int own, int size) {
  const auto text = receive_soon(socket, std::ssize(greeting(word, 0, 0)));
  if (!text || !text->starts_with(word)) return std::nullopt;
  std::istringstream numbers(text->substr(word.size()));
  int rank = 0;
  int its_size = 0;
  numbers >> rank >> its_size;
  if (numbers.fail() || its_size != size || rank <= own || rank >= size) return std::nullopt;
  return rank;
}

std::string meeting_text(const std::vector<Address>& addresses, const std::string& word) {
  std::string text = word + "\n";
  for (const Address& address : addresses) {
    text += fmt::format("{} {}\n", address.host, address.port);
  }
  return text;
}

/// Those of the ranks above this one, which connect to it, into their places.
void accept_higher(const Listener& listener, const std::string& word, int own,
                   std::vector<Socket>& peers, Clock::time_point end) {
  const int size = static_cast<int>(peers.size());
  for (int here = own + 1; here < size;) {
    const milliseconds left = left_until(end);
    if (left.count() == 0) {
      throw peer_lost(own == 0 ? fmt::format("only {} of {} processes have begun", here, size)
                               : fmt::format("only {} of {} processes could reach process {}",
                                             here - own - 1, size - own - 1, own));
    }
    Socket socket = accept(listener, left);
    if (!socket.is_open()) continue;
    const auto rank = greeted_rank(socket, word, own, size);
    if (!rank || !socket.send(kWelcome)) continue;
    Socket& place = peers[static_cast<size_t>(*rank)];
    here += place.is_open() ? 0 : 1;
    place = std::move(socket);
  }
}

void accept_all(const MeetingPoint& point, std::vector<Socket>& peers, Clock::time_point end) {
  if (point.address) return accept_higher(listen(point.address->port), point.word, 0, peers, end);
  const Listener listener = listen();
  const std::string word = secret_word();
  const MeetingFile file(point.file, meeting_text(listener.addresses, word));
  accept_higher(listener, word, 0, peers, end);
}

/// A connection to whoever wrote this text, while it listens.
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

/// The file's text, or nothing while it is not there; what it would say of an address.
std::string text_at(const MeetingPoint& point) {
  if (point.address) return meeting_text(resolved(*point.address), point.word);
  try {
    return io::read_text(point.file, kMaxMeetingBytes);
  } catch (const Error&) {
    return {};
  }
}

std::string name_of(const MeetingPoint& point) {
  if (!point.address) return point.file;
  return fmt::format("{}:{}", point.address->host, point.address->port);
}

Socket find_first(const MeetingPoint& point, int rank, int size, Clock::time_point end) {
  while (left_until(end).count() > 0) {
    Socket socket = answer(text_at(point), rank, size);
    if (socket.is_open()) return socket;
    std::this_thread::sleep_for(kPause);
  }
  throw peer_lost(fmt::format("process 0 of {} could not be reached", size))
      .leaderless()
      .note("looked for", name_of(point));
}

/// A text with its length in front.
void send_text(const Socket& socket, int peer, const std::string& text) {
  if (socket.send(fmt::format("{:>8}", text.size())) && socket.send(text)) return;
  throw peer_lost(fmt::format("process {} ended while the processes met", peer));
}

std::string receive_text(const Socket& socket, int peer, Clock::time_point end) {
  // 0 would mean any time.
  socket.limit_waiting(std::max(left_until(end), milliseconds(1)));
  const auto length = socket.receive(std::ssize(fmt::format("{:>8}", 0)));
  const i64 bytes = length ? std::strtoll(length->c_str(), nullptr, 10) : -1;
  auto text = bytes >= 0 && bytes <= kMaxMeetingBytes ? socket.receive(bytes) : std::nullopt;
  socket.limit_waiting(milliseconds(0));
  if (!text) throw peer_lost(fmt::format("process {} ended while the processes met", peer));
  return *std::move(text);
}

/// Where everybody listens, by rank, over the connections to rank 0. Empty for that one.
std::vector<std::string> share_texts(const std::string& mine, int rank,
                                     const std::vector<Socket>& peers, Clock::time_point end) {
  std::vector<std::string> all(peers.size());
  if (rank != 0) {
    send_text(peers[0], 0, mine);
    for (size_t i = 1; i < all.size(); ++i) all[i] = receive_text(peers[0], 0, end);
    return all;
  }
  for (size_t i = 1; i < all.size(); ++i) all[i] = receive_text(peers[i], static_cast<int>(i), end);
  for (size_t i = 1; i < all.size(); ++i) {
    for (size_t of = 1; of < all.size(); ++of) send_text(peers[i], static_cast<int>(i), all[of]);
  }
  return all;
}

void connect_others(int rank, std::vector<Socket>& peers, Clock::time_point end) {
  if (rank == 0) {
    share_texts({}, rank, peers, end);
    return;
  }
  const int size = static_cast<int>(peers.size());
  const Listener listener = listen();
  const std::string word = secret_word();
  const auto texts = share_texts(meeting_text(listener.addresses, word), rank, peers, end);
  for (int lower = 1; lower < rank; ++lower) {
    Socket& place = peers[static_cast<size_t>(lower)];
    place = answer(texts[static_cast<size_t>(lower)], rank, size);
    if (!place.is_open()) {
      throw peer_lost(fmt::format("process {} of {} could not be reached", lower, size));
    }
  }
  accept_higher(listener, word, rank, peers, end);
}

}  // namespace

std::vector<Socket> connect_processes(const MeetingPoint& point, int rank, int size,
                                      milliseconds patience, Reach reach) {
  const Clock::time_point end = Clock::now() + patience;
  std::vector<Socket> peers(static_cast<size_t>(size));
  if (rank == 0) {
    accept_all(point, peers, end);
  } else {
    peers[0] = find_first(point, rank, size, end);
  }
  if (reach == Reach::kEverybody) connect_others(rank, peers, end);
  return peers;
}

}  // namespace shardtool::comm
