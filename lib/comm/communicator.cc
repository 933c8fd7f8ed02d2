#include "lib/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "lib/comm/group_communicator.h"
#include "lib/comm/packed_error.h"

namespace shardtool::comm {
namespace {

i64 total_bytes(const std::vector<std::string>& texts) {
  i64 total = 0;
  for (const std::string& text : texts) total += std::ssize(text);
  return total;
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

/// Arguments of one process in a split.
struct Choice {
  std::int64_t color;
  std::int64_t key;
  std::uint64_t free_channel;
};

std::vector<Choice> choices(const std::vector<std::string>& all) {
  std::vector<Choice> list(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizeof(Choice)) {
      throw Error(ErrorCode::kInternal, fmt::format("process {} is not in a split", rank));
    }
    std::memcpy(&list[rank], all[rank].data(), sizeof(Choice));
  }
  return list;
}

/// Ranks of a color, by (key, rank).
std::vector<int> members_of(const std::vector<Choice>& all, std::int64_t color) {
  std::vector<int> members;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].color == color) members.push_back(static_cast<int>(rank));
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
  });
  return members;
}

}  // namespace

void PendingSend::wait() {
  if (Communicator* const comm = std::exchange(comm_, nullptr)) comm->do_finish(ticket_);
  if (failure_) throw *std::exchange(failure_, std::nullopt);
}

void Communicator::barrier() {
  begin(Operation::kBarrier, 0);
  do_all_gather({});
}

void Communicator::send(int to, std::string_view bytes) {
  begin(Operation::kSend, std::ssize(bytes));
  require_rank(to);
  if (to == rank_) return static_cast<void>(to_self_.emplace_back(bytes));
  do_finish(do_post(to, base_, std::string(bytes)));
}

std::string Communicator::receive(int from) {
  begin(Operation::kReceive, 0);
  require_rank(from);
  std::string bytes;
  if (from != rank_) {
    bytes = do_receive(from, base_);
  } else if (to_self_.empty()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("process {} waits for a message that it did not send itself", rank_));
  } else {
    bytes = std::move(to_self_.front());
    to_self_.pop_front();
  }
  counters_.add_bytes(Operation::kReceive, std::ssize(bytes));
  return bytes;
}

PendingSend Communicator::send_async(int to, std::string bytes) {
  begin(Operation::kSend, std::ssize(bytes));
  require_rank(to);
  if (to == rank_) {
    to_self_.push_back(std::move(bytes));
    return {};
  }
  try {
    return {this, do_post(to, base_, std::move(bytes))};
  } catch (const Error& error) {
    return PendingSend(error);
  }
}

std::vector<std::string> Communicator::all_gather(std::string_view mine, Operation counted_as) {
  begin(counted_as, std::ssize(mine));
  return do_all_gather(mine);
}

std::string Communicator::broadcast(int from, std::string bytes) {
  begin(Operation::kBroadcast, 0);
  require_rank(from);
  bytes = do_broadcast(from, std::move(bytes));
  counters_.add_bytes(Operation::kBroadcast, std::ssize(bytes));
  return bytes;
}

std::vector<std::string> Communicator::all_to_all(std::vector<std::string> to_each,
                                                  Operation counted_as) {
  begin(counted_as, total_bytes(to_each));
  if (std::ssize(to_each) != size_) {
    throw Error(ErrorCode::kInternal,
                fmt::format("all_to_all has {} parts for {} processes", to_each.size(), size_));
  }
  return do_all_to_all(std::move(to_each));
}

void Communicator::native_all_reduce(Dtype type, std::span<std::byte> values) {
  begin(Operation::kAllReduce, std::ssize(values));
  require_native_sums(type);
  do_native_all_reduce(type, values);
}

std::string Communicator::native_reduce_scatter(Dtype type, std::string_view values) {
  begin(Operation::kReduceScatter, std::ssize(values));
  require_native_sums(type);
  const auto unit = static_cast<size_t>(size_ * (bits(type) / 8));
  if (values.size() % unit != 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("reduce_scatter: {} bytes do not make {} equal ranges of {}",
                            values.size(), size_, to_string(type)));
  }
  return do_native_reduce_scatter(type, values);
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  begin(Operation::kSplit, 0);
  const Choice mine{color, key, next_channel()};
  const auto all = choices(do_all_gather({reinterpret_cast<const char*>(&mine), sizeof mine}));
  Channel channel = 0;
  for (const Choice& one : all) channel = std::max(channel, one.free_channel);
  next_channel() = channel + 2;
  if (color < 0) return nullptr;
  auto part = do_split(members_of(all, color), channel);
  part->set_deadline(first_, later_);
  return part;
}

void Communicator::abort(Error& error) noexcept {
  try {
    if (size_ > 1) name_process(error, rank_, size_);
  } catch (const std::bad_alloc&) {
    // The error is told without its process.
  }
  do_abort(error);
}

void Communicator::set_deadline(std::chrono::milliseconds first, std::chrono::milliseconds later) {
  first_ = first;
  later_ = later;
  current_.patience = is_first_ ? first : later;
}

std::vector<std::string> Communicator::do_all_gather(std::string_view mine) {
  return do_all_to_all(std::vector<std::string>(static_cast<size_t>(size_), std::string(mine)));
}

std::string Communicator::do_broadcast(int from, std::string bytes) {
  if (rank_ != from) return do_receive(from, collective_channel());
  std::vector<Ticket> tickets;
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) tickets.push_back(do_post(to, collective_channel(), bytes));
  }
  for (const Ticket ticket : tickets) do_finish(ticket);
  return bytes;
}

std::vector<std::string> Communicator::do_all_to_all(std::vector<std::string> to_each) {
  std::vector<Ticket> tickets;
  // Each rank begins with the next one, so that not all send to the same rank at first.
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_;
    tickets.push_back(
        do_post(to, collective_channel(), std::move(to_each[static_cast<size_t>(to)])));
  }
  for (int from = 0; from < size_; ++from) {
    if (from == rank_) continue;
    to_each[static_cast<size_t>(from)] = do_receive(from, collective_channel());
  }
  for (const Ticket ticket : tickets) do_finish(ticket);
  return to_each;
}

std::unique_ptr<Communicator> Communicator::do_split(std::vector<int> members, Channel first) {
  return std::make_unique<GroupCommunicator>(*this, std::move(members), first);
}

void Communicator::do_native_all_reduce(Dtype, std::span<std::byte>) {
  throw Error(ErrorCode::kInternal, "the engine has no all_reduce of its own");
}

std::string Communicator::do_native_reduce_scatter(Dtype, std::string_view) {
  throw Error(ErrorCode::kInternal, "the engine has no reduce_scatter of its own");
}

std::optional<Communicator::Clock::time_point> Communicator::wait_end() const {
  if (current_.patience == kForever) return std::nullopt;
  return Clock::now() + current_.patience;
}

std::string Communicator::silence_of(int peer) const {
  return fmt::format("process {} of {} gave no sign of itself for {} in {}", peer, size_,
                     seconds(current_.patience), operation_name());
}

void Communicator::begin(Operation operation, i64 bytes) {
  require_others();
  counters_.add(operation, bytes);
  current_ = {operation, std::exchange(is_first_, false) ? first_ : later_};
}

void Communicator::require_rank(int rank) const {
  if (rank >= 0 && rank < size_) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("{} names process {} of {}", operation_name(), rank, size_));
}

void Communicator::require_native_sums(Dtype type) const {
  if (has_native_sums(type)) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("the engine does not add {} itself", to_string(type)));
}

Communicator::Ticket SoloCommunicator::do_post(int, Channel, std::string) {
  throw Error(ErrorCode::kInternal, "a single process cannot send messages");
}
void SoloCommunicator::do_finish(Ticket) {}
std::string SoloCommunicator::do_receive(int, Channel) {
  throw Error(ErrorCode::kInternal, "a single process cannot receive messages");
}
void SoloCommunicator::do_abort(const Error& error) noexcept {
  if (!aborted_) aborted_ = error;
}
void SoloCommunicator::require_others() {
  if (aborted_) throw *aborted_;
}

}  // namespace shardtool::comm
