#include "lib/comm/tcp/tcp_communicator.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/comm/tcp/tcp_link.h"

namespace shardtool::comm {
namespace {

using std::chrono::milliseconds;

/// Maximum delay until data that another thread of this process received is seen.
constexpr milliseconds kGlance{20};

class TcpCommunicator final : public MessageCommunicator {
 public:
  TcpCommunicator(int rank, int size, std::vector<Socket> peers, Reach reach)
      : MessageCommunicator(rank, size, links_over(std::move(peers))), reach_(reach) {}

  /// Shuts down sending and drains incoming data: closing a socket with unread bytes discards sent
  /// ones.
  ~TcpCommunicator() override {
    for (const auto& link : links()) {
      if (link) tcp(*link).finish_sending();
    }
    const auto end = Clock::now() + (was_aborted() ? kLastWords : milliseconds(0));
    pump();
    while (any_open() && Clock::now() < end) {
      pause(0);
      pump();
    }
  }

 protected:
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

  void pause(int) override {
    std::vector<pollfd> wanted;
    {
      const std::lock_guard lock(mutex());
      for (const auto& link : links()) {
        if (!link || link->has_ended()) continue;
        const int events = POLLIN | (link->has_queue() ? POLLOUT : 0);
        wanted.push_back({tcp(*link).fd(), static_cast<short>(events), 0});
      }
    }
    ::poll(wanted.data(), wanted.size(), static_cast<int>(kGlance.count()));
  }

 private:
  static Links links_over(std::vector<Socket> peers) {
    Links links;
    for (Socket& peer : peers) {
      links.push_back(peer.is_open() ? std::make_unique<TcpLink>(std::move(peer)) : nullptr);
    }
    return links;
  }
  static TcpLink& tcp(MessageLink& link) { return static_cast<TcpLink&>(link); }

  void send_to_all(const std::vector<std::string>& messages) {
    std::vector<Ticket> tickets;
    for (int to = 1; to < size(); ++to) {
      for (const std::string& one : messages) {
        tickets.push_back(do_post(to, collective_channel(), one));
      }
    }
    for (const Ticket ticket : tickets) do_finish(ticket);
  }

  bool any_open() const {
    return std::ranges::any_of(links(),
                               [](const auto& link) { return link && !link->has_ended(); });
  }

  const Reach reach_;
};

}  // namespace

std::unique_ptr<Communicator> meet(const MeetingPoint& point, int rank, int size,
                                   milliseconds patience, Reach reach,
                                   const std::atomic<bool>* cancel) {
  if (size == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<TcpCommunicator>(
      rank, size, connect_processes(point, rank, size, patience, reach, cancel), reach);
}

}  // namespace shardtool::comm
