#include "lib/comm/tcp/tcp_meeting.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/comm/message_communicator.h"
#include "lib/comm/packed_error.h"
#include "lib/comm/tcp/frame.h"
#include "lib/comm/tcp/gate.h"
#include "lib/comm/tcp/handshake.h"
#include "lib/comm/tcp/meeting_file.h"
#include "lib/store/local/file.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;

constexpr i64 kMostUnread = 1 << 20;
constexpr size_t kSecretBytes = 32;
constexpr milliseconds kPause{20};
constexpr milliseconds kConnectTime{2000};
constexpr milliseconds kHandshakeTime{5000};

Error peer_lost(std::string message) {
  return Error(ErrorCode::kPeerLost, std::move(message));
}

Deadline at_most(milliseconds time, Deadline end) {
  return std::min(end, Deadline::clock::now() + time);
}

/// Next frame of a connection; nullopt if it ends before, or none is complete by `end`.
std::optional<Frame> receive_frame(const Socket& socket, Deadline end) {
  FrameReader reader;
  while (true) {
    const std::span<char> room = reader.room();
    const auto bytes = socket.receive(std::ssize(room), end);
    if (!bytes) return std::nullopt;
    std::ranges::copy(*bytes, room.begin());
    reader.filled(room.size());
    if (auto frame = reader.take()) return frame;
  }
}

/// Connections to processes of lower rank, and from those of higher rank.
class Meeting {
 public:
  Meeting(const MeetingPoint& point, int rank, int size, Deadline end)
      : point_(point),
        rank_(rank),
        end_(end),
        credentials_{point.secret, point.launch, size},
        peers_(static_cast<size_t>(size)) {}

  std::vector<Socket> connect() {
    try {
      rank_ == 0 ? accept_all() : find_first();
      connect_others();
    } catch (Error& error) {
      tell(error);
      throw;
    }
    return std::move(peers_);
  }

 private:
  int size() const { return credentials_.size; }
  Socket& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  void accept_all();
  void accept_higher(const Listener& listener);
  void find_first();
  void find(int host, const std::function<std::vector<Address>()>& addresses,
            const std::string& looked_for);
  void try_addresses(int host, const std::vector<Address>& addresses);
  Socket shake_hands(int host, Socket socket);
  std::vector<Address> addresses_of_first();

  void connect_others();
  std::vector<std::string> share_texts(const std::string& mine);
  void send_text(int to, const std::string& text);
  std::string receive_text(int from);
  void tell(Error& error) const;

  const MeetingPoint& point_;
  const int rank_;
  const Deadline end_;
  Credentials credentials_;
  std::vector<Socket> peers_;
  std::string refusal_ = {};  ///< reason why the last attempt to find a process failed
};

void Meeting::accept_all() {
  if (point_.address) return accept_higher(listen_at(*point_.address, end_));
  const Listener listener = listen();
  credentials_.secret = to_hex(random_bytes(kSecretBytes));
  const MeetingFile file(point_.file, {credentials_.secret, listener.addresses});
  accept_higher(listener);
}

/// Accepts the connections of higher ranks into their slots.
void Meeting::accept_higher(const Listener& listener) {
  Gate gate(listener, credentials_, rank_);
  const int came = gate.admit(peers_, end_);
  const int expected = size() - rank_ - 1;
  if (came == expected) return;
  Error error =
      peer_lost(rank_ == 0 ? fmt::format("only {} of {} processes have begun", came + 1, size())
                           : fmt::format("only {} of {} processes could reach process {}", came,
                                         expected, rank_));
  if (rank_ == 0 && !point_.file.empty()) error.note("met over", point_.file);
  error.note("listened at", list_of(listener.addresses));
  if (gate.refused() > 0) {
    error.note("refused",
               fmt::format("{} connections without the secret of this launch", gate.refused()));
  }
  throw std::move(error);
}

void Meeting::find_first() {
  find(
      0, [this] { return addresses_of_first(); },
      point_.address ? to_string(*point_.address) : point_.file);
}

/// Current addresses of the first process at the meeting point; also reads the secret from a file.
std::vector<Address> Meeting::addresses_of_first() {
  if (point_.address) return resolved(*point_.address, end_);
  FoundNote found = read_meeting_file(point_.file);
  if (!found.refusal.empty()) refusal_ = "the file is not believed: " + found.refusal;
  if (!found.note) return {};
  credentials_.secret = std::move(found.note->secret);
  return std::move(found.note->addresses);
}

/// Connects to a process of lower rank, which may start to listen later.
void Meeting::find(int host, const std::function<std::vector<Address>()>& addresses,
                   const std::string& looked_for) {
  const Deadline begin = Deadline::clock::now();
  while (milliseconds_until(end_) > 0) {
    try_addresses(host, addresses());
    if (peer(host).is_open()) return;
    check_interrupted(Deadline::clock::now() - begin);
    std::this_thread::sleep_until(at_most(kPause, end_));
  }
  Error error = peer_lost(fmt::format("process {} of {} could not be reached", host, size()))
                    .note("looked for", looked_for);
  if (host == 0) error.leaderless();
  if (!refusal_.empty()) error.note("found", refusal_);
  throw std::move(error);
}

void Meeting::try_addresses(int host, const std::vector<Address>& addresses) {
  for (const Address& address : addresses) {
    Socket socket = comm::connect(address, at_most(kConnectTime, end_));
    if (socket.is_open()) peer(host) = shake_hands(host, std::move(socket));
    if (peer(host).is_open()) return;
  }
}

/// Returns the connection if the process there is the expected one.
Socket Meeting::shake_hands(int host, Socket socket) {
  const Deadline end = at_most(kHandshakeTime, end_);
  GuestSide side(credentials_, rank_, host);
  const auto challenge = socket.receive(kChallengeBytes, end);
  const auto answer = challenge ? side.answer(*challenge) : std::nullopt;
  if (!answer) {
    refusal_ = "the process that listens there is not shardtool";
    return {};
  }
  const auto welcome =
      socket.send(*answer, end) ? socket.receive(kWelcomeBytes, end) : std::nullopt;
  if (welcome && side.is_welcome(*welcome)) return socket;
  refusal_ = "the process there has another secret, or is of another launch";
  return {};
}

void Meeting::send_text(int to, const std::string& text) {
  if (peer(to).send(frame_head(FrameKind::kData, 0, text.size()) + text, end_)) return;
  throw peer_lost(fmt::format("process {} ended while the processes met", to));
}

/// Returns the text that another process sends, or throws the error that it sends instead.
std::string Meeting::receive_text(int from) {
  auto frame = receive_frame(peer(from), end_);
  if (frame && frame->kind == FrameKind::kData) return std::move(frame->bytes);
  if (frame && frame->kind == FrameKind::kAbort) throw error_in(frame->bytes);
  throw peer_lost(fmt::format("process {} ended while the processes met", from));
}

/// Sends the error to those whom this process has met, and waits until they have read it: closing a
/// connection with unread bytes discards sent ones.
void Meeting::tell(Error& error) const {
  if (std::ranges::none_of(peers_, &Socket::is_open)) return;
  name_process(error, rank_, size());
  const Interruptible undisturbed(nullptr);
  const Deadline last = Deadline::clock::now() + kLastWords;
  const std::string bytes = pack(error);
  for (const Socket& one : peers_) {
    if (!one.is_open()) continue;
    one.send(frame_head(FrameKind::kAbort, 0, bytes.size()) + bytes, last);
    ::shutdown(one.fd(), SHUT_WR);
  }
  for (const Socket& one : peers_) {
    if (one.is_open()) static_cast<void>(one.receive(kMostUnread, last));
  }
}

/// Shares the listening addresses of all ranks over the connections to rank 0, whose entry is
/// empty.
std::vector<std::string> Meeting::share_texts(const std::string& mine) {
  std::vector<std::string> all(peers_.size());
  if (rank_ != 0) {
    send_text(0, mine);
    for (int of = 1; of < size(); ++of) all[static_cast<size_t>(of)] = receive_text(0);
    return all;
  }
  for (int from = 1; from < size(); ++from) all[static_cast<size_t>(from)] = receive_text(from);
  for (int from = 1; from < size(); ++from) {
    // A process that waits for the addresses sends nothing, unless it fails meanwhile.
    if (peer(from).has_arrivals()) receive_text(from);
  }
  for (int to = 1; to < size(); ++to) {
    for (int of = 1; of < size(); ++of) send_text(to, all[static_cast<size_t>(of)]);
  }
  return all;
}

/// Connects to all but the first. For a meeting at an address, the others listen only on the
/// interface that leads to it.
void Meeting::connect_others() {
  if (rank_ == 0) {
    share_texts({});
    return;
  }
  const Listener listener = point_.address ? listen_at(own_end(peer(0)), end_) : listen();
  const auto texts = share_texts(to_lines(listener.addresses));
  for (int lower = 1; lower < rank_; ++lower) {
    const auto addresses = addresses_in(texts[static_cast<size_t>(lower)]);
    find(
        lower, [&] { return addresses; }, list_of(addresses));
  }
  accept_higher(listener);
}

}  // namespace

std::vector<Socket> connect_processes(const MeetingPoint& point, int rank, int size,
                                      milliseconds patience) {
  store::allow_many_files();
  const Interruptible scope(interruption(), kLastPatience);
  return Meeting(point, rank, size, Deadline::clock::now() + patience).connect();
}

}  // namespace shardtool::comm
