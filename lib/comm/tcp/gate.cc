#include "lib/comm/tcp/gate.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "lib/base/interruption.h"

namespace shardtool::comm {
namespace {

/// Time limit of a visit: a process of the launch proves itself within milliseconds, or connects
/// again.
constexpr std::chrono::seconds kVisit{10};
/// Limit of visitors; above it the longest waiting one is turned away.
constexpr size_t kMostVisitors = 256;
/// Visitors accepted before the present ones are served again.
constexpr int kAtOnce = 64;
constexpr std::chrono::milliseconds kGatePause{20};

}  // namespace

int Gate::admit(std::vector<Socket>& peers, Deadline end) {
  const auto higher = peers.begin() + rank_ + 1;
  const auto is_open = [](const Socket& socket) { return socket.is_open(); };
  const auto all = std::distance(higher, peers.end());
  Deadline last = Deadline::clock::now();
  while (std::count_if(higher, peers.end(), is_open) < all) {
    if (milliseconds_until(end) == 0) break;
    check_interrupted(Deadline::clock::now() - last);
    wait(std::min(end, Deadline::clock::now() + kInterruptionGlance));
    for (const Socket& listening : listener_.sockets) take_in(listening);
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      const Verdict verdict = serve(*visitor, peers);
      refused_ += verdict == Verdict::kRefused ? 1 : 0;
      if (verdict == Verdict::kAdmitted) last = Deadline::clock::now();
      visitor = verdict == Verdict::kWaits ? std::next(visitor) : visitors_.erase(visitor);
    }
  }
  return static_cast<int>(std::count_if(higher, peers.end(), is_open));
}

/// Waits for a new connection, data from a visitor, or the end of a visit.
void Gate::wait(Deadline end) const {
  std::vector<pollfd> wanted;
  for (const Socket& listening : listener_.sockets) wanted.push_back({listening.fd(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) wanted.push_back({visitor.socket.fd(), POLLIN, 0});
  const Deadline first = visitors_.empty() ? end : std::min(end, visitors_.front().until);
  ::poll(wanted.data(), wanted.size(), milliseconds_until(first));
}

void Gate::take_in(const Socket& listening) {
  for (int taken = 0; taken < kAtOnce; ++taken) {
    std::optional<Socket> socket = accept(listening);
    if (!socket) return;
    if (!socket->is_open()) {
      make_room();
      std::this_thread::sleep_for(kGatePause);
      return;
    }
    const Deadline now = Deadline::clock::now();
    HostSide side(credentials_, rank_);
    // The challenge fits into the buffers of a new connection.
    if (!socket->send(side.challenge(), now)) continue;
    if (visitors_.size() == kMostVisitors) make_room();
    visitors_.push_back({*std::move(socket), std::move(side), now + kVisit});
  }
}

void Gate::make_room() {
  if (visitors_.empty()) return;
  visitors_.pop_front();
  ++refused_;
}

Gate::Verdict Gate::serve(Visitor& visitor, std::vector<Socket>& peers) const {
  const bool is_there = visitor.socket.receive_some(visitor.answer, kAnswerBytes);
  if (std::ssize(visitor.answer) < static_cast<i64>(kAnswerBytes)) {
    const bool may_stay = is_there && milliseconds_until(visitor.until) > 0;
    return may_stay ? Verdict::kWaits : Verdict::kRefused;
  }
  const auto admission = visitor.side.judge(visitor.answer);
  if (!admission) return Verdict::kRefused;
  if (!visitor.socket.send(admission->welcome, visitor.until)) return Verdict::kRefused;
  peers[static_cast<size_t>(admission->rank)] = std::move(visitor.socket);
  return Verdict::kAdmitted;
}

}  // namespace shardtool::comm
