#include "lib/api/planning/search/replica_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/collective/one_shot.h"
#include "lib/plan/reshard_time.h"

namespace shardtool::api {
namespace {

/// Adds a pass' time to the parts of an answer; compute hides the reads of weights, or they hide
/// it.
void add_parts(const model::Roofline& roof, double times, AnswerParts& parts) {
  const double work = roof.step_us - roof.comm_us - roof.launch_us;
  const double compute = work > roof.memory_us ? roof.compute_us : 0;
  parts.compute += times * compute;
  parts.memory += times * (work - compute);
  parts.collectives += times * roof.comm_us;
  parts.launches += times * roof.launch_us;
}

AnswerParts parts_of(const plan::Service& service, const model::Roofline& step,
                     const model::Roofline& prompts) {
  AnswerParts parts;
  const auto later = static_cast<double>(service.later_tokens);
  add_parts(step, later, parts);
  const double passes = (service.others_us * later + service.prompt_us) / prompts.step_us;
  add_parts(prompts, passes, parts);
  parts.host = service.request_us + service.host_us * later;
  parts.waiting = service.turn_us + service.queue_us;
  return parts;
}

/// Prices one replica for numbers of clients.
class ReplicaPrices {
 public:
  ReplicaPrices(const SearchOptions& options, const PlacedReplica& replica,
                const model::ReplicaWorkload& workload, bool has_experts)
      : options_(options), replica_(replica), workload_(workload), has_experts_(has_experts) {}

  /// Sets the row's service, offer and parts. `clients` are those of its busiest replica, of which
  /// `places` fit. The other replicas answer as slowly.
  void price(i64 clients, i64 places, ServingRow& row) {
    const i64 running = std::min(clients, places);
    const model::Roofline step = decode(ceil_div(running, row.layout.pp));
    const i64 together = replica_.pass->token_groups();
    const model::Roofline prompts = prefill(std::min(together, running), row.sequence_parallel);
    const plan::ServiceLoad load{options_.prompt_len, options_.answer_len, clients};
    row.service = plan::service_of(
        load, running,
        {step.step_us, prompts.step_us, std::min(together, running), row.layout.pp, has_experts_});
    row.parts = parts_of(row.service, step, prompts);
    row.offer = {row.layout.devices(),
                 row.service.ttft_us,
                 row.service.tpot_us,
                 row.service.answer_us(),
                 row.service.tokens_per_s * static_cast<double>(row.concurrency) /
                     static_cast<double>(clients),
                 options_.plan.device.price_per_hour / kSecondsPerHour *
                     static_cast<double>(row.layout.devices())};
  }

 private:
  model::Roofline decode(i64 batch) {
    auto& found = steps_[batch];
    if (!found) {
      workload_.batch = batch;
      workload_.sequence_parallel = false;
      const plan::HardwareProfile& hardware = *options_.plan.hardware;
      found = step_in_engine(replica_.pass->decode(workload_, &hardware), hardware);
    }
    return *found;
  }
  model::Roofline prefill(i64 batch, bool sequence_parallel) {
    auto& found = prompts_[{batch, sequence_parallel}];
    if (!found) {
      workload_.batch = batch;
      workload_.sequence_parallel = sequence_parallel;
      found = replica_.pass->prefill(workload_, &*options_.plan.hardware).roofline;
    }
    return *found;
  }

  const SearchOptions& options_;
  const PlacedReplica& replica_;
  model::ReplicaWorkload workload_;
  bool has_experts_;
  std::map<i64, std::optional<model::Roofline>> steps_;
  std::map<std::pair<i64, bool>, std::optional<model::Roofline>> prompts_;
};

/// Prices the layouts of one replica, which differ in dp alone.
class ReplicaSearch {
 public:
  ReplicaSearch(const SearchOptions& options, const ServedModel& model, size_t source,
                const std::optional<MoveStart>& today)
      : options_(options), model_(model), source_(source), today_(today) {}

  PricedLayouts run(const std::vector<ServingLayout>& layouts) && {
    add_replica(layouts);
    if (today_) add_moves();
    return std::move(found_);
  }

 private:
  void refuse(const std::vector<ServingLayout>& layouts, const char* constraint,
              const std::string& reason) {
    for (const ServingLayout& layout : layouts)
      found_.refused.push_back({source_, layout, constraint, reason});
  }

  void add_replica(std::vector<ServingLayout> layouts) {
    std::unique_ptr<PlacedReplica> replica;
    const i64 most_clients = std::ranges::max(options_.concurrency);
    for (const ServingLayout& layout : layouts) {
      if (layout.dp <= most_clients) continue;
      refuse(
          {layout}, "clients",
          fmt::format("{} for {}", plural(layout.dp, "replica"), plural(most_clients, "client")));
    }
    std::erase_if(layouts, [most_clients](const auto& layout) { return layout.dp > most_clients; });
    if (layouts.empty()) return;
    if (const auto why_not = too_small(layouts.front()); !why_not.empty())
      return refuse(layouts, "memory", why_not);
    try {
      replica = model_.place(layouts.front());
    } catch (const Error& error) {
      const char* const constraint = constraint_of(error);
      if (constraint == nullptr) throw;
      return refuse(layouts, constraint, error.what());
    }
    for (const std::string& kv_dtype : kv_dtypes_of(options_))
      add_rows(*replica, layouts, kv_dtype);
  }

  /// Explains why not even an equal share of the weights fits; empty if it does.
  std::string too_small(const ServingLayout& layout) const {
    const PlanOptions& plan = options_.plan;
    const i64 budget = plan.device.usable_bytes();
    const i64 share = ceil_div(model_.bytes(), layout.replica());
    if (share + plan.device.overhead_bytes <= budget) return {};
    return fmt::format("an equal share of the weights is {}, and a device has {}",
                       format_bytes(share), format_bytes(budget - plan.device.overhead_bytes));
  }

  void add_rows(const PlacedReplica& replica, const std::vector<ServingLayout>& layouts,
                const std::string& kv_dtype) {
    const ReplicaMemory memory = model_.memory(replica, kv_dtype);
    if (memory.places == 0) {
      return refuse(layouts, "memory",
                    fmt::format("a device needs {} for one sequence", format_bytes(memory.total)));
    }
    ReplicaPrices prices(options_, replica, model_.workload(replica, kv_dtype),
                         model_.limits().experts > 0);
    for (const ServingLayout& layout : layouts) {
      ServingRow row;
      row.source = source_;
      row.layout = layout;
      row.kv_dtype = kv_dtype;
      row.weights = memory.weights;
      row.total = memory.total;
      row.per_sequence = memory.per_sequence;
      row.fits = checked_mul(memory.places, layout.dp).value_or(memory.places);
      for (const i64 clients : options_.concurrency) add_row(row, clients, memory.places, prices);
    }
  }

  void add_row(ServingRow row, i64 clients, i64 places, ReplicaPrices& prices) {
    row.concurrency = clients;
    if (clients < row.layout.dp) return;  // a replica would be idle
    if (options_.survive > 0 && !survives(row, places)) {
      const std::string reason = fmt::format("{} left would hold {} sequences",
                                             plural(row.layout.dp - lost(row), "replica"),
                                             places * std::max<i64>(0, row.layout.dp - lost(row)));
      return refuse({row.layout}, "survival", reason);
    }
    const i64 each = ceil_div(clients, row.layout.dp);
    const bool is_cut = options_.plan.workload.sequence_parallel && row.layout.tp > 1;
    for (const bool cut : {false, true}) {
      if (cut && !is_cut) continue;
      row.sequence_parallel = cut;
      prices.price(each, places, row);
      found_.rows.push_back(row);
    }
  }

  /// Sets the cost of the move to every layout that has rows.
  void add_moves() {
    std::map<i64, LayoutMove> moves;  // layouts differ in dp alone
    for (ServingRow& row : found_.rows) {
      const auto [found, is_new] = moves.try_emplace(row.layout.dp);
      if (is_new) found->second = move_to(row.layout);
      row.move = found->second;
    }
  }

  LayoutMove move_to(const ServingLayout& layout) const {
    const plan::ReshardPlan plan =
        plan_move(model_.source().tensors, *today_, model_.resolve(layout), options_.plan);
    LayoutMove move{plan.bytes_total, plan.bytes_moved, plan.bytes_kept, {}, plan.peak_bytes};
    if (plan.renumbering) move.renumbered = plan.renumbering->bytes_moved;
    const plan::ReshardTime time =
        plan::time_of(plan, *options_.plan.hardware, options_.plan.node_size);
    move.us = time.network_us.value_or(0);
    return move;
  }

  /// Replicas that stop when the lost devices are in as many of them as possible.
  i64 lost(const ServingRow& row) const { return std::min(options_.survive, row.layout.dp); }
  bool survives(const ServingRow& row, i64 places) const {
    return places >= ceil_div(row.concurrency, std::max<i64>(1, row.layout.dp - lost(row))) &&
           row.layout.dp > lost(row);
  }

  const SearchOptions& options_;
  const ServedModel& model_;
  size_t source_;
  const std::optional<MoveStart>& today_;
  PricedLayouts found_;
};

}  // namespace

model::Roofline step_in_engine(const model::PhasePrice& decode,
                               const plan::HardwareProfile& hardware) {
  model::Roofline step = *decode.roofline;
  const double others_us = step.step_us - step.comm_us - step.launch_us;
  step.comm_us = 0;
  for (const model::CommRow& row : decode.comm)
    step.comm_us += static_cast<double>(row.count) * plan::us_in_step(row.collective, hardware);
  step.launch_us *= plan::EngineOverheads().launch_factor;
  step.step_us = others_us + step.comm_us + step.launch_us;
  return step;
}

std::vector<std::string> kv_dtypes_of(const SearchOptions& options) {
  return options.kv_dtypes.empty() ? std::vector<std::string>{""} : options.kv_dtypes;
}

PricedLayouts price_layouts(const SearchOptions& options, const ServedModel& model, size_t source,
                            const std::optional<MoveStart>& today,
                            const std::vector<ServingLayout>& layouts) {
  return ReplicaSearch(options, model, source, today).run(layouts);
}

}  // namespace shardtool::api
