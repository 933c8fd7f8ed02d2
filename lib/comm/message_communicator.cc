#include "lib/comm/message_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/threads.h"
#include "lib/comm/packed_error.h"

namespace shardtool::comm {
namespace {

/// Longest time until a process that computes answers another one.
constexpr std::chrono::milliseconds kAnswerTime{100};

Error loss_of(int peer, const std::string& reason) {
  Error error(ErrorCode::kPeerLost, reason);
  return peer == 0 ? std::move(error.leaderless()) : error;
}

Error end_of(int peer, int size) {
  return loss_of(peer, fmt::format("process {} of {} ended without a word", peer, size));
}

/// Sets a flag for the lifetime of this object.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

MessageCommunicator::MessageCommunicator(int rank, int size, Links links)
    : Communicator(rank, size), links_(std::move(links)) {
  if (!start_thread(answers_, [this](const std::stop_token& stop) { answer(stop); })) {
    throw Error(ErrorCode::kLimit, "the system refused a thread");
  }
}

/// Takes in messages as often as others ask, while no operation does.
void MessageCommunicator::answer(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, stop, kAnswerTime, [&] { return stop.stop_requested(); })) {
    if (is_waiting_) continue;
    try {
      pump();
    } catch (const Error&) {
      // The next operation reports the failing link.
    }
  }
}

void MessageCommunicator::require_others() {
  const std::lock_guard lock(mutex_);
  pump();
  throw_abort();
}

void MessageCommunicator::raise_stop() noexcept {
  const std::lock_guard lock(mutex_);
  spread_stop();
}

bool MessageCommunicator::stop_was_raised() {
  const std::lock_guard lock(mutex_);
  pump();
  const bool any_ended =
      std::ranges::any_of(links_, [](const auto& link) { return link && link->has_ended(); });
  if (any_ended) spread_stop();
  return stopped_;
}

Communicator::Ticket MessageCommunicator::do_post(int to, Channel channel, std::string bytes) {
  const std::lock_guard lock(mutex_);
  throw_abort();
  if (link_to(to).has_ended()) lost(to);
  const Ticket number = link_to(to).queue(FrameKind::kData, channel, std::move(bytes));
  return number * static_cast<Ticket>(size()) + static_cast<Ticket>(to);
}

void MessageCommunicator::do_finish(Ticket ticket) {
  const auto to = static_cast<int>(ticket % static_cast<Ticket>(size()));
  const Ticket number = ticket / static_cast<Ticket>(size());
  wait_for(to, [&] { return link_to(to).left() >= number; });
}

std::string MessageCommunicator::do_receive(int from, Channel channel) {
  std::optional<std::string> bytes;
  wait_for(from, [&] {
    bytes = mailbox_.take(from, channel);
    return bytes.has_value();
  });
  return *std::move(bytes);
}

void MessageCommunicator::do_abort(const Error& error) noexcept {
  std::unique_lock lock(mutex_);
  spread_abort(error);
  const auto end = Clock::now() + kLastWords;
  try {
    for (int looks = 0; any_queue() && Clock::now() < end; ++looks) {
      lock.unlock();
      pause(looks);
      lock.lock();
      pump();
    }
  } catch (const Error&) {
    // A failing link cannot take the reason either.
  }
}

std::optional<Error> MessageCommunicator::loss(int peer) {
  const std::lock_guard lock(mutex_);
  if (!link_to(peer).has_ended()) return std::nullopt;
  return end_of(peer, size());
}

/// Sends and receives until `done`, which is called under the mutex; throws if `peer` has ended or
/// has not answered for too long.
template <class Done>
void MessageCommunicator::wait_for(int peer, const Done& done) {
  std::unique_lock lock(mutex_);
  MessageLink& link = link_to(peer);
  auto end = wait_end();
  auto activity = link.activity();
  auto busy = busy_;
  bool has_asked = false;
  const Flag waiting(is_waiting_);
  for (int looks = 0;; ++looks) {
    pump();
    throw_abort();
    if (done()) return;
    if (link.has_ended()) lost(peer);
    if (link.activity() != activity) end = wait_end();
    if (std::exchange(busy, busy_) != busy_) has_asked = false;
    if (end && !has_asked && Clock::now() >= *end - half_patience()) {
      // The answer counts as activity.
      has_asked = link.queue(FrameKind::kAsk, 0, {}) > 0;
    }
    activity = link.activity();
    check_interrupted();
    lock.unlock();
    if (end && Clock::now() >= *end) {
      const Error loss = loss_of(peer, silence_of(peer));
      do_abort(loss);
      lock.lock();
      throw loss;
    }
    pause(looks);
    lock.lock();
  }
}

MessageLink& MessageCommunicator::link_to(int peer) {
  const auto& link = links_[static_cast<size_t>(peer)];
  if (link) return *link;
  throw Error(ErrorCode::kInternal, fmt::format("{}: processes {} and {} are not connected",
                                                operation_name(), rank(), peer));
}

void MessageCommunicator::pump() {
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (!links_[peer]) continue;
    for (Frame& frame : links_[peer]->pump()) accept(static_cast<int>(peer), std::move(frame));
  }
}

void MessageCommunicator::accept(int from, Frame frame) {
  switch (frame.kind) {
    case FrameKind::kData:
      return mailbox_.put(from, frame.channel, std::move(frame.bytes));
    case FrameKind::kStop:
      return spread_stop();  // rank 0 forwards it to processes that are connected to rank 0 alone
    case FrameKind::kAbort:
      return spread_abort(error_in(frame.bytes));
    case FrameKind::kAsk:
      links_[static_cast<size_t>(from)]->queue(is_waiting_ ? FrameKind::kAlive : FrameKind::kBusy,
                                               0, {});
      return;
    case FrameKind::kAlive:
      return;
    case FrameKind::kBusy:
      ++busy_;
      return;
    case FrameKind::kEnd:
      break;  // only for links that cannot detect the end otherwise
  }
  spread_abort(Error(ErrorCode::kPeerLost,
                     fmt::format("process {} of {} sent an invalid message", from, size())));
}

void MessageCommunicator::throw_abort() const {
  if (aborted_) throw *aborted_;
}

void MessageCommunicator::spread(FrameKind kind, const std::string& bytes) {
  for (const auto& link : links_) {
    if (link && !link->has_ended()) link->queue(kind, 0, bytes);
  }
}

void MessageCommunicator::spread_stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  try {
    spread(FrameKind::kStop, {});
  } catch (const Error&) {
    // The next operation reports the failing link.
  }
}

void MessageCommunicator::spread_abort(const Error& error) noexcept {
  stopped_ = true;
  if (aborted_) return;
  try {
    aborted_ = error;
    spread(FrameKind::kAbort, pack(error));
  } catch (const std::exception&) {
    // Processes behind a failing link, or without memory here, detect the end of this process.
  }
}

bool MessageCommunicator::any_queue() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link && link->has_queue(); });
}

void MessageCommunicator::lost(int peer) {
  const Error loss = end_of(peer, size());
  spread_abort(loss);
  throw loss;
}

}  // namespace shardtool::comm
