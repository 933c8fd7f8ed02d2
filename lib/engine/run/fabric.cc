#include "lib/engine/run/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

#include "kernels/field/field.h"
#include "kernels/fold/fold.h"
#include "lib/base/error.h"
#include "lib/comm/reduce.h"
#include "lib/engine/weights/part_bytes.h"
#include "lib/mesh/rank_groups.h"

namespace shardtool::engine {
namespace {

std::vector<std::string> names_of(const mesh::Over& over) {
  std::vector<std::string> names;
  for (const mesh::AxisRef& ref : over) names.push_back(ref.axis);
  return names;
}

template <class N>
std::vector<i64> ranks_of(const Placed<N>& parts) {
  std::vector<i64> ranks;
  for (const auto& [rank, part] : parts) ranks.push_back(rank);
  return ranks;
}

/// Returns the sum in this order.
template <class N>
kernels::Array<N> sum_here(const std::vector<const kernels::Array<N>*>& summands) {
  std::vector<N> sum = summands.front()->values();
  for (size_t s = 1; s < summands.size(); ++s) {
    const std::vector<N>& summand = summands[s]->values();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + summand[i];
  }
  return sum;
}

/// The same on the accelerator, a few summands at a time.
template <class N>
kernels::Array<N> sum_there(const std::vector<const kernels::Array<N>*>& summands,
                            kernels::Workbench& bench) {
  kernels::Array<N> sum = *summands.front();
  for (size_t first = 1; first < summands.size(); first += kernels::kMostParts - 1) {
    kernels::FoldParts<N> fold;
    fold.part[0] = bench.in(sum);
    fold.parts = 1;
    for (size_t s = first; s < std::min(first + kernels::kMostParts - 1, summands.size()); ++s) {
      fold.part[static_cast<size_t>(fold.parts++)] = bench.in(*summands[s]);
    }
    fold.n = std::ssize(sum);
    fold.y = bench.out(sum);
    bench.run(fold);
  }
  return sum;
}

/// Returns parts that have the same features and no numbers.
template <class N>
Placed<N> without_numbers(const Placed<N>& parts) {
  Placed<N> headers;
  for (const auto& [rank, part] : parts) headers[rank] = {part.features, {}};
  return headers;
}

/// Throws kUnsupported if two summands have different features.
template <class N>
void require_same(i64 rank, const Part<N>& part, i64 member, const Part<N>& summand) {
  if (summand.features == part.features) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("ranks {} and {} add up different features", rank, member))
      .note("one has", to_string(part.features))
      .note("the other", to_string(summand.features));
}

}  // namespace

Fabric::Fabric(mesh::Mesh mesh, comm::Communicator* comm, std::optional<Dtype> native)
    : mesh_(std::move(mesh)), comm_(comm) {
  const i64 processes = comm == nullptr ? 1 : comm->size();
  const i64 process = comm == nullptr ? 0 : comm->rank();
  for (i64 rank = mesh_.size() * process / processes;
       rank < mesh_.size() * (process + 1) / processes; ++rank) {
    own_.push_back(rank);
  }
  if (native && processes > 1 && comm->has_native_sums(*native)) {
    native_ = std::make_unique<NativeExchange>(*comm, *native);
  }
}

template <class N>
NativeExchange* Fabric::native() const {
  return std::is_same_v<N, float> ? native_.get() : nullptr;
}

template <class N>
i64 Fabric::number_bytes(plan::Move move) const {
  const NativeExchange* const own = native<N>();
  const bool is_native = own != nullptr && move != plan::Move::kPermute;
  return is_native ? bits(own->type()) / 8 : static_cast<i64>(sizeof(N));
}

template <class N>
Placed<N> Fabric::with_others(const Placed<N>& own) {
  Placed<N> all = own;
  if (is_alone()) return all;
  for (const std::string& bytes : comm_->all_gather(to_bytes(own))) add_from_bytes(bytes, all);
  return all;
}

template <class N>
i64 Fabric::sum_over(const std::vector<std::string>& along, Placed<N>& value,
                     kernels::Workbench& bench) {
  const Placed<N> all = with_others(value);
  const mesh::RankGroups groups(mesh_, ranks_of(all), along);
  // By the first rank of a group, because its members share the sum.
  std::map<i64, kernels::Array<N>> sums;
  for (auto& [rank, part] : value) {
    const std::vector<i64>& members = groups.of(rank);
    auto [sum, is_new] = sums.try_emplace(members.front());
    if (is_new) {
      std::vector<const kernels::Array<N>*> summands;
      for (const i64 member : members) {
        const Part<N>& summand = all.at(member);
        require_same(rank, part, member, summand);
        summands.push_back(&summand.data);
      }
      const bool is_there = is_alone() && bench.is_parallel();
      sum->second = is_there ? sum_there(summands, bench) : sum_here(summands);
    }
    part.data = sum->second;
  }
  i64 most = 0;
  for (const auto& [rank, part] : all) most = std::max(most, std::ssize(part.data));
  return most;
}

template <class N>
i64 Fabric::gather_over(const std::vector<std::string>& along, i64 tokens, Placed<N>& value,
                        kernels::Workbench& bench) {
  const Placed<N> all = with_others(value);
  const mesh::RankGroups groups(mesh_, ranks_of(all), along);
  std::map<i64, Part<N>> wholes;  // by the first rank of a group
  for (auto& [rank, part] : value) {
    const std::vector<i64>& members = groups.of(rank);
    auto [whole, is_new] = wholes.try_emplace(members.front());
    if (is_new) {
      Placed<N> parts;
      for (const i64 member : members) parts[member] = all.at(member);
      whole->second = is_alone() ? joined(bench, parts, tokens) : joined(parts, tokens);
    }
    part = whole->second;
  }
  return all.empty() ? 0 : all.begin()->second.features.global_size() * tokens;
}

std::vector<ExchangeGroup> Fabric::groups_of(const std::vector<i64>& all,
                                             const std::vector<std::string>& along) const {
  const mesh::RankGroups members(mesh_, all, along);
  std::vector<ExchangeGroup> groups;
  for (const i64 rank : all) {
    if (members.of(rank).front() != rank) continue;
    ExchangeGroup one{members.of(rank), {}};
    for (const i64 member : one.ranks) {
      const int process = process_of(member);
      if (one.processes.empty() || one.processes.back() != process)
        one.processes.push_back(process);
    }
    groups.push_back(std::move(one));
  }
  return groups;
}

i64 Fabric::sum_natively(const std::vector<std::string>& along, i64 tokens, Placed<float>& value) {
  const Placed<float> all = with_others(without_numbers(value));
  i64 most = 0;
  for (const auto& [rank, part] : all) most = std::max(most, part.width() * tokens);
  for (const ExchangeGroup& group : groups_of(ranks_of(all), along)) {
    for (const i64 member : group.ranks) {
      require_same(group.ranks.front(), all.at(group.ranks.front()), member, all.at(member));
    }
    native_->sum(group, value);
  }
  return most;
}

i64 Fabric::gather_natively(const std::vector<std::string>& along, i64 tokens,
                            Placed<float>& value) {
  const Placed<float> all = with_others(without_numbers(value));
  for (const ExchangeGroup& group : groups_of(ranks_of(all), along)) {
    const Placed<float> parts = native_->gathered(group, all, tokens, value);
    if (parts.empty()) continue;
    const Part<float> whole = joined(parts, tokens);
    for (const i64 rank : group.ranks) {
      if (const auto own = value.find(rank); own != value.end()) own->second = whole;
    }
  }
  return all.empty() ? 0 : all.begin()->second.features.global_size() * tokens;
}

template <class N>
void Fabric::exchange(const ops::Exchange& exchange, i64 tokens, Placed<N>& value,
                      kernels::Workbench& bench) {
  const std::vector<std::string> along = names_of(exchange.over);
  const bool sums = exchange.move == plan::Move::kAllReduce;
  if (!sums && exchange.move != plan::Move::kAllGather) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the engine has no {}", plan::to_string(exchange.move)));
  }
  if constexpr (std::is_same_v<N, float>) {
    if (native_ != nullptr) {
      return count(exchange, sums ? sum_natively(along, tokens, value)
                                  : gather_natively(along, tokens, value));
    }
  }
  count(exchange, sums ? sum_over(along, value, bench) : gather_over(along, tokens, value, bench));
}

void Fabric::count(const ops::Exchange& exchange, i64 elements) {
  Counted& counted = counts_[{mesh::to_string(exchange.over), exchange.move}];
  ++counted.count;
  counted.elements += elements;
}

int Fabric::process_of(i64 rank) const {
  const i64 processes = comm_ == nullptr ? 1 : comm_->size();
  // The last process whose first rank is at most `rank`.
  return static_cast<int>(((rank + 1) * processes - 1) / mesh_.size());
}

template <class N>
Placed<N> Fabric::hand_over(const ops::Exchange& handoff, std::span<const i64> senders,
                            std::span<const i64> receivers, const Placed<N>& sent) {
  const mesh::RankGroups groups(mesh_, {senders.begin(), senders.end()}, names_of(handoff.over));
  const int here = comm_ == nullptr ? 0 : comm_->rank();
  std::vector<std::pair<i64, i64>> routes;  // same order in every process
  for (const i64 receiver : receivers) {
    const std::vector<i64>& candidates = groups.of(receiver);
    if (candidates.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("no rank of the stage before hands anything to rank {}", receiver))
          .note("found", fmt::format("ranks {}", fmt::join(senders, ", ")));
    }
    routes.emplace_back(candidates.front(), receiver);
  }
  std::vector<comm::PendingSend> leaving;
  for (const auto& [sender, receiver] : routes) {
    const int to = process_of(receiver);
    if (process_of(sender) != here || to == here) continue;
    leaving.push_back(comm_->send_async(to, to_bytes(Placed<N>{{receiver, sent.at(sender)}})));
  }
  Placed<N> received;
  for (const auto& [sender, receiver] : routes) {
    if (process_of(receiver) != here) continue;
    const int from = process_of(sender);
    if (from == here) {
      received[receiver] = sent.at(sender);
    } else {
      add_from_bytes(comm_->receive(from), received);
    }
  }
  for (comm::PendingSend& one : leaving) one.wait();
  i64 most = 0;
  for (const auto& [rank, part] : received) most = std::max(most, std::ssize(part.data));
  if (comm_ != nullptr) comm::all_reduce(*comm_, std::span(&most, 1), comm::Maximum());
  count(handoff, most);
  return received;
}

template <class N>
void Fabric::reduce(const std::vector<plan::Placement>& on, Placed<N>& value,
                    kernels::Workbench& bench) {
  std::vector<std::string> along;
  for (size_t a = 0; a < on.size(); ++a) {
    if (on[a].is(plan::Placement::Kind::kPartial)) along.push_back(mesh_.axes()[a].name);
  }
  if (!along.empty()) sum_over(along, value, bench);
}

std::string Fabric::broadcast(std::string bytes) {
  if (is_alone()) return bytes;
  return comm_->broadcast(0, std::move(bytes));
}

template <class N>
void Fabric::broadcast(Placed<N>& parts) {
  if (is_alone()) return;
  const std::string bytes =
      comm_->broadcast(0, is_first_process() ? to_bytes(parts) : std::string());
  parts.clear();
  add_from_bytes(bytes, parts);
}

#define SHARDTOOL_INSTANTIATE(N)                                                              \
  template void Fabric::exchange(const ops::Exchange&, i64, Placed<N>&, kernels::Workbench&); \
  template i64 Fabric::number_bytes<N>(plan::Move) const;                                     \
  template Placed<N> Fabric::hand_over(const ops::Exchange&, std::span<const i64>,            \
                                       std::span<const i64>, const Placed<N>&);               \
  template void Fabric::reduce(const std::vector<plan::Placement>&, Placed<N>&,               \
                               kernels::Workbench&);                                          \
  template void Fabric::broadcast(Placed<N>&);
SHARDTOOL_INSTANTIATE(kernels::Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
