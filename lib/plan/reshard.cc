#include "lib/plan/reshard.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lib/base/error.h"
#include "lib/plan/byte_count.h"
#include "lib/plan/layout_pool.h"
#include "lib/plan/renumbering.h"

namespace shardtool::plan {
namespace {

i64 local_bytes(const Holders& side, int holder, int bits) {
  i64 elements = 1;
  for (int axis = 0; axis < side.set->rank(); ++axis) {
    elements *=
        side.set->maps(axis)[static_cast<size_t>(side.set->pick(holder)[axis])].local_size();
  }
  return bytes_of(elements, bits);
}

void find_groups(std::span<const ReshardTensor> tensors, ReshardPlan& plan) {
  LayoutPool pool;
  std::map<std::tuple<int, int, int>, size_t> numbers;
  plan.group_of_tensor.reserve(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    const std::tuple key(pool.number(tensors[t].from), pool.number(tensors[t].to), tensors[t].bits);
    const auto [found, is_new] = numbers.try_emplace(key, plan.groups.size());
    if (is_new) plan.groups.emplace_back();
    plan.groups[found->second].tensors.push_back(t);
    plan.group_of_tensor.push_back(found->second);
  }
}

const ReshardTensor& first_of(std::span<const ReshardTensor> tensors, const ReshardGroup& group) {
  return tensors[group.tensors.front()];
}

void measure_groups(std::span<const ReshardTensor> tensors, const TrafficOptions& options,
                    ReshardPlan& plan) {
  for (ReshardGroup& group : plan.groups) {
    const ReshardTensor& tensor = first_of(tensors, group);
    try {
      group.each = traffic(tensor.from, tensor.to, tensor.bits, options.node_size, options.most_gap,
                           options.boxes);
    } catch (Error& e) {
      e.tensor(std::string(tensor.name));
      throw;
    }
  }
}

/// Adds the load of `n` equal tensors to the devices at both ends of a transfer.
void add_load(const Transfer& transfer, i64 n, i64 node_size, ReshardPlan& plan) {
  const i64 bytes = transfer.bytes * n;
  RankLoad& receiver = plan.per_rank[static_cast<size_t>(transfer.to)];
  receiver.receive += bytes;
  if (transfer.from == kStorage) return;
  RankLoad& sender = plan.per_rank[static_cast<size_t>(transfer.from)];
  sender.send += bytes;
  if (transfer.from / node_size == transfer.to / node_size) return;
  sender.send_far += bytes;
  receiver.receive_far += bytes;
}

void add_totals(i64 node_size, ReshardPlan& plan) {
  std::set<std::pair<i64, i64>> pairs;
  for (const ReshardGroup& group : plan.groups) {
    const auto n = static_cast<i64>(group.tensors.size());
    const Traffic& each = group.each;
    const std::pair<i64*, i64> sums[] = {{&plan.bytes_total, each.total},
                                         {&plan.bytes_kept, each.kept},
                                         {&plan.bytes_moved, each.moved},
                                         {&plan.wanted_once, each.wanted_once},
                                         {&plan.lower_bound, each.lower_bound},
                                         {&plan.gather_first_bytes, each.gather_first},
                                         {&plan.inter_node_bytes, each.inter_node},
                                         {&plan.between_nodes_bytes, each.between_nodes},
                                         {&plan.between_nodes_equal, each.between_nodes_equal},
                                         {&plan.write_segments, each.write_segments}};
    for (const auto& [sum, value] : sums) add_bytes(*sum, times(value, n));
    plan.transfers += static_cast<i64>(each.transfers.size()) * n;
    if (each.moved > 0) plan.changes += n;
    for (const Transfer& transfer : each.transfers) {
      pairs.emplace(transfer.from, transfer.to);
      add_load(transfer, n, node_size, plan);
    }
    plan.reads += each.reads * n;
    for (const Load& load : each.loads) {
      plan.per_rank[static_cast<size_t>(load.to)].load += load.reads * n;
      plan.loads += load.reads * n;
    }
  }
  plan.pairs = static_cast<i64>(pairs.size());
}

/// True if a rank's region is unchanged, so that no memory is allocated.
bool same_region(const ReshardTensor& tensor, int from, int to) {
  return tensor.from.set->region(from) == tensor.to.set->region(to);
}

/// Memory steps of each device while the groups move.
void add_steps(const ReshardTensor& tensor, size_t group, i64 n,
               std::vector<std::vector<MemoryStep>>& steps) {
  std::map<i64, int> holders;
  for (size_t h = 0; h < tensor.from.ranks.size(); ++h) {
    const i64 rank = tensor.from.ranks[h];
    holders[rank] = static_cast<int>(h);
    MemoryStep& step = steps[static_cast<size_t>(rank)][group];
    step.source = local_bytes(tensor.from, static_cast<int>(h), tensor.bits);
  }
  for (size_t h = 0; h < tensor.to.ranks.size(); ++h) {
    const i64 rank = tensor.to.ranks[h];
    MemoryStep& step = steps[static_cast<size_t>(rank)][group];
    step.destination = local_bytes(tensor.to, static_cast<int>(h), tensor.bits);
    const auto had = holders.find(rank);
    const bool stays =
        had != holders.end() && same_region(tensor, had->second, static_cast<int>(h));
    step.extra = stays ? 0 : step.destination;
  }
  for (auto& device : steps) device[group].tensors = n;
}

void add_schedule(std::span<const ReshardTensor> tensors, ReshardPlan& plan) {
  std::vector<std::vector<MemoryStep>> steps(plan.per_rank.size(),
                                             std::vector<MemoryStep>(plan.groups.size()));
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const auto n = static_cast<i64>(plan.groups[g].tensors.size());
    add_steps(first_of(tensors, plan.groups[g]), g, n, steps);
  }
  Schedule found = schedule(steps);
  for (size_t rank = 0; rank < plan.per_rank.size(); ++rank)
    plan.per_rank[rank].peak_bytes = found.peak_bytes[rank];
  if (!steps.empty()) {
    plan.peak_rank = plan.per_rank[found.busiest].rank;
    for (const MemoryStep& step : steps[found.busiest])
      add_bytes(plan.begin_bytes, times(step.source, step.tensors));
    plan.levels = levels_of(steps[found.busiest], found.order);
  }
  plan.order = std::move(found.order);
  plan.peak_bytes = found.peak;
  plan.peak_bound = found.bound;
}

Renumbering renumber(std::span<const ReshardTensor> tensors, const ReshardPlan& plan,
                     const TrafficOptions& options) {
  const i64 ranks = options.to_devices;
  const auto devices = static_cast<i64>(plan.per_rank.size());
  std::vector<i64> overlap(static_cast<size_t>(ranks * devices), 0);
  for (const ReshardGroup& group : plan.groups) {
    const ReshardTensor& tensor = first_of(tensors, group);
    add_overlaps(tensor.from, tensor.to, tensor.bits, static_cast<i64>(group.tensors.size()),
                 devices, overlap);
  }
  Renumbering found;
  const bool best = devices <= options.best_numbering_limit;
  found.device_of_rank =
      best ? best_assignment(ranks, devices, overlap) : greedy_assignment(ranks, devices, overlap);
  found.bytes_moved = plan.bytes_total;
  for (i64 rank = 0; rank < ranks; ++rank) {
    const i64 device = found.device_of_rank[static_cast<size_t>(rank)];
    found.bytes_moved -= overlap[static_cast<size_t>(rank * devices + device)];
  }
  found.lower_bound =
      best ? found.bytes_moved : plan.bytes_total - assignment_bound(ranks, devices, overlap);
  return found;
}

}  // namespace

double ReshardPlan::gap() const {
  if (lower_bound == 0) return 0;
  return static_cast<double>(bytes_moved) / static_cast<double>(lower_bound) - 1;
}

ReshardPlan plan_reshard(std::span<const ReshardTensor> tensors, const TrafficOptions& options) {
  ReshardPlan plan;
  plan.from_storage = options.from_devices == 0;
  const i64 devices = std::max(options.from_devices, options.to_devices);
  for (i64 rank = 0; rank < devices; ++rank) plan.per_rank.push_back({rank});
  find_groups(tensors, plan);
  measure_groups(tensors, options, plan);
  add_totals(options.node_size, plan);
  add_schedule(tensors, plan);
  if (!plan.from_storage && devices <= options.numbering_limit)
    plan.renumbering = renumber(tensors, plan, options);
  return plan;
}

}  // namespace shardtool::plan
