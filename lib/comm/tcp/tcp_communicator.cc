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
  TcpCommunicator(int rank, int size, std::vector<Socket> peers)
      : MessageCommunicator(rank, size, links_over(std::move(peers))) {}

  /// Shuts down sending and drains incoming data: closing a socket with unread bytes discards sent
  /// ones.
  ~TcpCommunicator() override {
    end_answers();
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

  bool any_open() const {
    return std::ranges::any_of(links(),
                               [](const auto& link) { return link && !link->has_ended(); });
  }
};

}  // namespace

std::unique_ptr<Communicator> meet(const MeetingPoint& point, int rank, int size,
                                   milliseconds patience) {
  if (size == 1) return std::make_unique<SoloCommunicator>();
  return std::make_unique<TcpCommunicator>(rank, size,
                                           connect_processes(point, rank, size, patience));
}

}  // namespace shardtool::comm
