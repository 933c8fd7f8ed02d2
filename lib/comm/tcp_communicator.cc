#include "shardtool/comm/tcp_communicator.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "shardtool/base/error.h"
#include "shardtool/comm/mailbox.h"
#include "shardtool/comm/tcp_link.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;

/// At most so long until what another thread of this process took in is seen.
constexpr milliseconds kGlance{20};
/// For last words to those who do not listen.
constexpr milliseconds kLastWords{500};

/// Links to the others. One thread waits, in poll and without the mutex; others look for a stop or
/// raise one at the same time.
class TcpCommunicator final : public Communicator {
 public:
  TcpCommunicator(int rank, int size, std::vector<Socket> peers, Reach reach)
      : Communicator(rank, size), reach_(reach) {
    for (Socket& peer : peers) links_.emplace_back(std::move(peer));
  }

  /// A socket that is closed with bytes unread takes back what it sent: those who are told of an
  /// abort get some time to read it.
  ~TcpCommunicator() override {
    for (const TcpLink& link : links_) link.finish_sending();
    const auto end = Clock::now() + (aborted_ ? kLastWords : milliseconds(0));
    do {
      pump();
    } while (any_open() && Clock::now() < end && poll_links(kGlance));
  }

  void raise_stop() noexcept override {
    const std::lock_guard lock(mutex_);
    spread_stop();
  }

  bool stop_was_raised() override {
    const std::lock_guard lock(mutex_);
    pump();
    if (any_closed()) spread_stop();
    return stopped_;
  }

 protected:
  Ticket do_post(int to, Channel channel, std::string bytes) override {
    const std::lock_guard lock(mutex_);
    require_link(to);
    const Ticket number = link_to(to).queue(FrameKind::kData, channel, std::move(bytes));
    link_to(to).flush();
    return number * static_cast<Ticket>(size()) + static_cast<Ticket>(to);
  }

  void do_finish(Ticket ticket) override {
    const auto to = static_cast<int>(ticket % static_cast<Ticket>(size()));
    const Ticket number = ticket / static_cast<Ticket>(size());
    wait_for(to, [&] { return link_to(to).left() >= number; });
  }

  std::string do_receive(int from, Channel channel) override {
    std::optional<std::string> bytes;
    wait_for(from, [&] {
      bytes = mailbox_.take(from, channel);
      return bytes.has_value();
    });
    return *std::move(bytes);
  }

  std::vector<std::string> do_all_gather(std::string_view mine) override {
    if (reach_ == Reach::kEverybody) return Communicator::do_all_gather(mine);
    std::vector<std::string> all = do_gather(mine);
    if (rank() == 0) {
      send_to_all(all);
    } else {
      for (int i = 0; i < size(); ++i) all.push_back(do_receive(0, collective_channel()));
    }
    return all;
  }

  void do_abort(const std::string& reason) noexcept override {
    std::unique_lock lock(mutex_);
    spread_abort(reason);
    const auto end = Clock::now() + kLastWords;
    while (any_queue() && Clock::now() < end) {
      lock.unlock();
      poll_links(kGlance);
      lock.lock();
      pump();
    }
  }

 private:
  TcpLink& link_to(int peer) { return links_[static_cast<size_t>(peer)]; }

  void send_to_all(const std::vector<std::string>& messages) {
    std::vector<Ticket> tickets;
    for (int to = 1; to < size(); ++to) {
      for (const std::string& one : messages) {
        tickets.push_back(do_post(to, collective_channel(), one));
      }
    }
    for (const Ticket ticket : tickets) do_finish(ticket);
  }

  void require_link(int peer) {
    require_others();
    if (link_to(peer).is_open()) return;
    if (link_to(peer).fd() >= 0) lost(peer);
    throw Error(ErrorCode::kInternal,
                fmt::format("{}: processes {} and {} are connected to the first alone",
                            operation_name(), rank(), peer));
  }

  void require_others() const {
    if (aborted_) throw Error(ErrorCode::kPeerLost, *aborted_);
  }

  /// Takes in and sends out until `done`, which is asked under the mutex; gives up when `peer` is
  /// gone or silent for too long.
  template <class Done>
  void wait_for(int peer, const Done& done) {
    std::unique_lock lock(mutex_);
    auto end = wait_end();
    auto activity = link_to(peer).activity();
    while (true) {
      pump();
      require_others();
      if (done()) return;
      require_link(peer);
      if (link_to(peer).activity() != activity) end = wait_end();
      activity = link_to(peer).activity();
      lock.unlock();
      if (end && Clock::now() >= *end) give_up(peer);
      poll_links(kGlance);
      lock.lock();
    }
  }

  /// Waits until some link has something to do. Always true.
  bool poll_links(milliseconds time) {
    std::vector<pollfd> wanted;
    {
      const std::lock_guard lock(mutex_);
      for (const TcpLink& link : links_) {
        if (!link.is_open()) continue;
        const int events = POLLIN | (link.has_queue() ? POLLOUT : 0);
        wanted.push_back({link.fd(), static_cast<short>(events), 0});
      }
    }
    ::poll(wanted.data(), wanted.size(), static_cast<int>(time.count()));
    return true;
  }

  void pump() {
    for (size_t peer = 0; peer < links_.size(); ++peer) {
      links_[peer].flush();
      for (Frame& frame : links_[peer].read()) accept(static_cast<int>(peer), std::move(frame));
    }
  }

  void accept(int from, Frame frame) {
    switch (frame.kind) {
      case FrameKind::kData:
        return mailbox_.put(from, frame.channel, std::move(frame.bytes));
      case FrameKind::kStop:
        return spread_stop();  // from rank 0 the others hear of it
      case FrameKind::kAbort:
        return spread_abort(frame.bytes);
      case FrameKind::kEnd:
        break;  // a connection that is closed says so
    }
    spread_abort(fmt::format("process {} of {} sent what no process sends", from, size()));
  }

  [[noreturn]] void lost(int peer) {
    const std::string reason = fmt::format("process {} of {} ended without a word", peer, size());
    spread_abort(reason);
    throw Error(ErrorCode::kPeerLost, reason);
  }

  void spread_stop() noexcept {
    if (std::exchange(stopped_, true)) return;
    spread(FrameKind::kStop, {});
  }

  void spread_abort(const std::string& reason) noexcept {
    stopped_ = true;
    if (aborted_) return;
    aborted_ = reason;
    spread(FrameKind::kAbort, reason);
  }

  void spread(FrameKind kind, const std::string& bytes) {
    for (TcpLink& link : links_) {
      if (!link.is_open()) continue;
      link.queue(kind, 0, bytes);
      link.flush();
    }
  }

  bool any_open() const { return std::ranges::any_of(links_, &TcpLink::is_open); }
  bool any_queue() const { return std::ranges::any_of(links_, &TcpLink::has_queue); }
  bool any_closed() const {
    return std::ranges::any_of(
        links_, [](const TcpLink& link) { return link.fd() >= 0 && !link.is_open(); });
  }

  const Reach reach_;
  std::mutex mutex_;
  std::vector<TcpLink> links_;  ///< by rank; never opened: itself, and those out of reach
  Mailbox mailbox_;
  std::optional<std::string> aborted_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Communicator> meet(const std::string& meeting_file, int rank, int size,
                                   milliseconds patience, Reach reach) {
  if (size == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<TcpCommunicator>(
      rank, size, connect_processes(meeting_file, rank, size, patience, reach), reach);
}

}  // namespace shardtool::comm
