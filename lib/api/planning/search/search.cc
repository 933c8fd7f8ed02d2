#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <thread>
#include <tuple>

#include "lib/api/planning/search/losses.h"
#include "lib/api/planning/search/served_model.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/workers.h"

namespace shardtool::api {
namespace {

constexpr double kSecondsPerHour = 3600;

Error impossible(const std::string& what, const std::string& help) {
  return std::move(Error(ErrorCode::kUsage, what).help(help));
}

void check(const SearchOptions& options) {
  if (!options.plan.hardware) {
    throw impossible("a search needs hardware", "give --profile; `plan profile list` lists them");
  }
  if (options.devices.empty() || options.concurrency.empty()) {
    throw impossible("a search needs numbers of devices and of clients",
                     "for example --devices 1,2,4,8 --concurrency 64");
  }
  const bool needs_price =
      options.objective == plan::Objective::kCost || options.limits.price_per_s;
  if (needs_price && options.plan.device.price_per_hour <= 0) {
    throw impossible("a search by cost needs the price of a device", "give --price");
  }
  const bool has_limit = options.limits.ttft_us || options.limits.tpot_us;
  if (options.objective == plan::Objective::kGoodput && !has_limit) {
    throw impossible("goodput is what keeps a limit, and there is none", "give --ttft or --tpot");
  }
}

/// Returns the types of the cache to choose from; an empty one is the model's own.
std::vector<std::string> kv_dtypes_of(const SearchOptions& options) {
  return options.kv_dtypes.empty() ? std::vector<std::string>{""} : options.kv_dtypes;
}

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
                const model::ReplicaWorkload& workload)
      : options_(options), replica_(replica), workload_(workload) {}

  /// Sets the row's service, offer and parts for `clients` of a replica, of which `places` fit.
  void price(i64 clients, i64 places, ServingRow& row) {
    const i64 running = std::min(clients, places);
    const model::Roofline step = decode(ceil_div(running, row.layout.pp));
    const i64 together = replica_.pass->token_groups();
    const model::Roofline prompts = prefill(std::min(together, running), row.sequence_parallel);
    const plan::ServiceLoad load{options_.prompt_len, options_.answer_len, clients};
    row.service = plan::service_of(
        load, running, {step.step_us, prompts.step_us, std::min(together, running), row.layout.pp});
    row.parts = parts_of(row.service, step, prompts);
    row.offer = {row.layout.devices(),
                 row.service.ttft_us,
                 row.service.tpot_us,
                 row.service.answer_us(),
                 row.service.tokens_per_s * static_cast<double>(row.layout.dp),
                 options_.plan.device.price_per_hour / kSecondsPerHour *
                     static_cast<double>(row.layout.devices())};
  }

 private:
  model::Roofline decode(i64 batch) {
    auto& found = steps_[batch];
    if (!found) {
      workload_.batch = batch;
      workload_.sequence_parallel = false;
      found = replica_.pass->decode(workload_, &*options_.plan.hardware).roofline;
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
  std::map<i64, std::optional<model::Roofline>> steps_;
  std::map<std::pair<i64, bool>, std::optional<model::Roofline>> prompts_;
};

/// Rows and refusals of some layouts.
struct Found {
  std::vector<ServingRow> rows;
  std::vector<RefusedLayout> refused;
};

/// Prices the layouts of one replica, which differ in dp alone.
class ReplicaSearch {
 public:
  ReplicaSearch(const SearchOptions& options, const ServedModel& model, size_t source)
      : options_(options), model_(model), source_(source) {}

  Found run(const std::vector<ServingLayout>& layouts) && {
    add_replica(layouts);
    return std::move(found_);
  }

 private:
  void refuse(const std::vector<ServingLayout>& layouts, const char* constraint,
              const std::string& reason) {
    for (const ServingLayout& layout : layouts)
      found_.refused.push_back({source_, layout, constraint, reason});
  }

  void add_replica(const std::vector<ServingLayout>& layouts) {
    std::unique_ptr<PlacedReplica> replica;
    if (const auto why_not = too_small(layouts.front()); !why_not.empty())
      return refuse(layouts, "memory", why_not);
    try {
      replica = model_.place(layouts.front());
    } catch (const Error& error) {
      const bool is_flow = error.code() == ErrorCode::kUnsupported;
      constexpr int kMappingStatus = 3;
      if (!is_flow && error_info(error.code()).exit_status != kMappingStatus) throw;
      return refuse(layouts, is_flow ? "model" : "cut", error.what());
    }
    for (const std::string& kv_dtype : kv_dtypes_of(options_))
      add_rows(*replica, layouts, kv_dtype);
  }

  /// Explains why not even an equal share of the weights fits; empty if it does.
  std::string too_small(const ServingLayout& layout) const {
    const PlanOptions& plan = options_.plan;
    const auto budget =
        static_cast<i64>(static_cast<double>(plan.device.bytes) * plan.device.fraction);
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
    ReplicaPrices prices(options_, replica, model_.workload(replica, kv_dtype));
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
    prices.price(each, places, row);
    if (options_.plan.workload.sequence_parallel && row.layout.tp > 1) {
      row.sequence_parallel = true;
      prices.price(each, places, row);
    }
    found_.rows.push_back(row);
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
  Found found_;
};

/// Fills a report, model by model.
class Search {
 public:
  explicit Search(const SearchOptions& options) : options_(options) {}

  SearchReport run() && {
    for (size_t source = 0; source < options_.plan.sources.size(); ++source) add_source(source);
    choose(options_, report_);
    return std::move(report_);
  }

 private:
  void add_source(size_t source) {
    const ServedModel model(options_.plan.sources[source], options_);
    for (const std::string& warning : model.warnings()) report_.warnings.push_back(warning);
    add_bound(model);
    const auto replicas = replicas_of(layout_space(options_.devices, model.limits()));
    std::vector<Found> found(replicas.size());
    std::atomic<size_t> next = 0;
    exec::run_workers(thread_count(replicas.size()), [&](const std::atomic<bool>& stop) {
      for (size_t i = next++; i < replicas.size() && !stop; i = next++)
        found[i] = ReplicaSearch(options_, model, source).run(replicas[i]);
    });
    for (Found& one : found) {
      std::ranges::move(one.rows, std::back_inserter(report_.rows));
      std::ranges::move(one.refused, std::back_inserter(report_.refused));
    }
  }

  /// Groups layouts by what one replica is.
  static std::vector<std::vector<ServingLayout>> replicas_of(
      const std::vector<ServingLayout>& layouts) {
    std::map<std::tuple<i64, i64, i64, bool>, std::vector<ServingLayout>> groups;
    for (const ServingLayout& layout : layouts)
      groups[{layout.pp, layout.ep, layout.tp, layout.expert_parallel}].push_back(layout);
    std::vector<std::vector<ServingLayout>> replicas;
    for (auto& [key, group] : groups) replicas.push_back(std::move(group));
    return replicas;
  }

  /// Every thread holds the layouts of all tensors.
  static i64 thread_count(size_t replicas) {
    constexpr i64 kMost = 16;
    const i64 processors = std::max<i64>(1, std::thread::hardware_concurrency());
    return std::min({kMost, processors, static_cast<i64>(replicas)});
  }

  /// Raises the bound to what an ideal division of this model's work over any number of devices
  /// offers: no collectives, launches, waiting or replicas.
  void add_bound(const ServedModel& model) {
    for (const std::string& kv_dtype : kv_dtypes_of(options_)) {
      for (const i64 clients : options_.concurrency) {
        for (const i64 devices : options_.devices) {
          const plan::Offer ideal = ideal_offer(model, kv_dtype, clients, devices);
          const double value = plan::value_of(ideal, options_.objective);
          if (!has_bound_ || value > report_.bound) report_.bound = value;
          has_bound_ = true;
        }
      }
    }
  }

  plan::Offer ideal_offer(const ServedModel& model, const std::string& kv_dtype, i64 clients,
                          i64 devices) const {
    const PlacedReplica& whole = model.whole();
    model::ReplicaWorkload workload = model.workload(whole, kv_dtype);
    const plan::HardwareProfile* hardware = &*options_.plan.hardware;
    const auto prompt = whole.pass->prefill(workload, hardware).roofline;
    // A client's tokens are fastest where it is alone.
    if (options_.objective == plan::Objective::kUser) clients = 1;
    workload.batch = clients;
    const auto step = whole.pass->decode(workload, hardware).roofline;
    const auto n = static_cast<double>(devices);
    const double step_us = (step->step_us - step->comm_us - step->launch_us) / n;
    const double prompt_us = prompt->compute_us / n;
    const auto others = static_cast<double>(std::max<i64>(0, clients - devices));
    const auto tokens = static_cast<double>(options_.answer_len);
    plan::Offer offer;
    offer.devices = devices;
    offer.ttft_us = prompt_us;
    offer.tpot_us = step_us + others * prompt_us / tokens;
    offer.answer_us = offer.ttft_us + offer.tpot_us * (tokens - 1);
    offer.tokens_per_s = static_cast<double>(clients) * tokens / offer.answer_us * 1e6;
    offer.price_per_s = options_.plan.device.price_per_hour / kSecondsPerHour * n;
    return offer;
  }

  const SearchOptions& options_;
  SearchReport report_;
  bool has_bound_ = false;
};

}  // namespace

SearchReport search_layouts(const SearchOptions& options) {
  check(options);
  return Search(options).run();
}

}  // namespace shardtool::api
