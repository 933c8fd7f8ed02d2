#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "lib/api/planning/emit/emit.h"
#include "lib/api/planning/search/losses.h"
#include "lib/api/planning/search/present_layout.h"
#include "lib/api/planning/search/replica_prices.h"
#include "lib/api/planning/search/replica_search.h"
#include "lib/api/planning/search/served_model.h"
#include "lib/api/planning/search/survival.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/workers.h"

namespace shardtool::api {
namespace {

Error impossible(const std::string& what, const std::string& help) {
  return std::move(Error(ErrorCode::kUsage, what).help(help));
}

void check(const SearchOptions& options) {
  options.plan.device.check();
  if (!options.plan.hardware) {
    throw impossible("a search needs hardware", "give --profile; `plan profile list` lists them");
  }
  if (options.devices.empty() || (options.concurrency.empty() && !options.request_rate)) {
    throw impossible("a search needs numbers of devices, and of clients or a rate of requests",
                     "for example --devices 1,2,4,8 --concurrency 64");
  }
  if (options.request_rate && (!options.concurrency.empty() || *options.request_rate <= 0)) {
    throw impossible("a rate of requests is above 0, and has no number of clients",
                     "give either --request-rate or --concurrency");
  }
  const bool is_by_cost = options.objective == plan::Objective::kCost;
  if ((is_by_cost || options.limits.price_per_s) && options.plan.device.price_per_hour <= 0) {
    throw impossible(fmt::format("{} needs a price of a device that is above 0",
                                 is_by_cost ? "a search by cost" : "a highest price"),
                     "give --price, for example 2.49");
  }
  const bool has_limit = options.limits.ttft_us || options.limits.tpot_us;
  if (options.objective == plan::Objective::kGoodput && !has_limit) {
    throw impossible("goodput is what keeps a limit, and there is none", "give --ttft or --tpot");
  }
  if (options.limits.tpot_us && options.answer_len == 1) {
    throw impossible(
        "--tpot limits the tokens after the first, and an answer of one token has none",
        "leave --tpot out, or give a larger --output-len");
  }
}

/// Properties of a model that its quantisations share.
struct Architecture {
  std::string source;
  std::string family;
  std::map<std::string, i64> sizes;

  explicit Architecture(const ServedModel& model) : source(model.searched().source) {
    const model::Model& bound = *model.whole().model.bound;
    family = bound.family;
    sizes = bound.sizes;
    sizes["layers"] = model.limits().layers;
  }

  /// "hidden is 4096 and 2048" for the first size that differs; empty if there is none.
  std::string difference(const Architecture& other) const {
    if (family != other.family) return fmt::format("{} and {}", family, other.family);
    for (const auto& [name, size] : sizes) {
      const auto found = other.sizes.find(name);
      if (found != other.sizes.end() && found->second != size)
        return fmt::format("{} is {} and {}", name, size, found->second);
    }
    return {};
  }
};

/// Fills a report, model by model.
class Search {
 public:
  explicit Search(const SearchOptions& options) : options_(options) {
    if (options.from) present_.emplace(*options.from);
  }

  SearchReport run() && {
    for (const SearchedModel& searched : options_.models()) add_model(searched);
    if (present_ && !was_present_) throw std::move(*not_present_);
    choose(options_, beyond_, report_);
    if (options_.plan.emit && report_.optimum) report_.emitted = emit();
    return std::move(report_);
  }

 private:
  void add_model(const SearchedModel& searched) {
    try {
      auto model = std::make_unique<ServedModel>(searched, options_);
      if (!searched.dtype || !model->is_as_stored()) add(*model);
      if (!searched.dtype) stored_ = std::move(model);
    } catch (const Error& error) {
      if (!searched.dtype || error.code() != ErrorCode::kUnsupported) throw;
      report_.warnings.push_back(fmt::format("'{}' is left out as {}: {}",
                                             quote_for_message(searched.source),
                                             to_string(*searched.dtype), error.what()));
    }
  }

  /// Throws kUsage for another model than the first one.
  void require_same(const ServedModel& model) {
    const Architecture architecture(model);
    if (!first_) first_ = architecture;
    const std::string difference = first_->difference(architecture);
    if (difference.empty()) return;
    throw impossible(
        fmt::format("'{}' and '{}' are not the same model: {}", quote_for_message(first_->source),
                    quote_for_message(architecture.source), difference),
        "a search compares quantisations of one model: search the others by themselves");
  }

  void add(const ServedModel& model) {
    require_same(model);
    for (const std::string& warning : model.warnings()) report_.warnings.push_back(warning);
    add_bound(model);
    const auto moved = moved_to(model);
    const auto replicas = replicas_of(layouts_of_search(options_.devices, model.limits()));
    std::vector<PricedLayouts> found(replicas.size());
    std::atomic<size_t> next = 0;
    exec::run_workers(search_threads(replicas.size()), [&](const std::atomic<bool>& stop) {
      for (size_t i = next++; i < replicas.size() && !stop; i = next++)
        found[i] = price_layouts(options_, model, moved, replicas[i]);
    });
    const auto unmoved =
        std::ranges::find_if(found, [](const PricedLayouts& one) { return !one.no_move.empty(); });
    if (unmoved != found.end()) warn_of_no_move("some", model, unmoved->no_move);
    for (PricedLayouts& one : found) {
      std::ranges::move(one.refused, std::back_inserter(report_.refused));
      std::ranges::move(one.beyond, std::back_inserter(beyond_));
    }
    for (auto& [layout, reason] : too_deep_layouts(options_.devices, model.limits()))
      report_.refused.push_back({model.searched(), layout, "cut", std::move(reason)});
    std::optional<Survival> survival;
    if (options_.survive > 0) survival.emplace(options_, model);
    for (PricedLayouts& one : found) {
      for (ServingRow& row : one.rows) {
        if (survival) row.fallback = survival->fallback_of(row);
        if (survival && !row.fallback) {
          refuse_survival(row);
        } else {
          report_.rows.push_back(std::move(row));
        }
      }
    }
  }

  void refuse_survival(const ServingRow& row) {
    const i64 left = std::max<i64>(0, row.layout.devices() - options_.survive);
    const std::string load = options_.request_rate
                                 ? fmt::format("{:g} requests per second", *options_.request_rate)
                                 : plural(row.concurrency, "client");
    report_.refused.push_back(
        {row.model, row.layout, "survival",
         fmt::format("no layout on {} left holds {}", plural(left, "device"), load)});
  }

  /// Writes the optimum for another program.
  std::string emit() {
    const ServingRow& best = report_.rows[*report_.optimum];
    const ServedModel model(best.model, options_);
    std::optional<Error> why_not;
    if (present_ && !start_of(model, why_not)) {
      throw impossible(fmt::format("no program casts weights while it moves them, and the best "
                                   "layout has others than today's: {}",
                                   why_not->what()),
                       "search one type, that of today's layout, or leave out --from");
    }
    const mapping::Resolution resolution = model.resolve(best.layout);
    const std::vector<TensorSpec> specs = model.source().specs();
    std::optional<EmittedLayout> from;
    if (present_) from = present_->emitted();
    return emitted(*options_.plan.emit, from ? &*from : nullptr, emitted_layout(resolution, specs),
                   model_name(model.source()));
  }

  /// Returns the weights to move to layouts of a model; nullopt without today's layout, or if it
  /// has other tensors. Warns of the latter.
  std::optional<MovedWeights> moved_to(const ServedModel& model) {
    if (!present_) return std::nullopt;
    std::optional<Error> why_not;
    const std::array<const ServedModel*, 2> candidates{
        &model, model.searched().dtype ? stored_.get() : nullptr};
    for (const ServedModel* candidate : candidates) {
      if (candidate == nullptr) continue;
      auto start = start_of(*candidate, why_not);
      if (start) return MovedWeights{candidate, std::move(*start)};
    }
    warn_of_no_move("all", model, why_not->what());
    not_present_ = std::move(why_not);
    return std::nullopt;
  }

  /// Returns the start of a move of a model's tensors; nullopt with the reason if today's layout
  /// has others.
  std::optional<MoveStart> start_of(const ServedModel& model, std::optional<Error>& why_not) {
    try {
      MoveStart start = present_->start_of(model.source().tensors);
      was_present_ = true;
      return start;
    } catch (Error& error) {
      if (error.code() != ErrorCode::kCoverage) throw;
      why_not = std::move(error);
      return std::nullopt;
    }
  }

  void warn_of_no_move(std::string_view which, const ServedModel& model, const std::string& why) {
    const auto& [source, dtype] = model.searched();
    report_.warnings.push_back(fmt::format(
        "{} rows of '{}'{} have no cost of a move: {}", which, quote_for_message(source),
        dtype ? fmt::format(" as {}", to_string(*dtype)) : "", why));
  }

  /// Raises the bound to what an ideal division of this model's work over any number of devices
  /// offers: no collectives, launches, waiting or replicas.
  void add_bound(const ServedModel& model) {
    const std::vector<i64> alone{1};  // an open load has one request under way at least
    const std::vector<i64>& loads = options_.request_rate ? alone : options_.concurrency;
    for (const std::string& kv_dtype : kv_dtypes_of(options_)) {
      for (const i64 clients : loads) {
        for (const i64 devices : options_.devices) {
          const auto ideal = ideal_offer(model, kv_dtype, clients, devices);
          if (!ideal) continue;
          const double value = plan::value_of(*ideal, options_.objective);
          if (!has_bound_ || value > report_.bound) report_.bound = value;
          has_bound_ = true;
        }
      }
    }
  }

  /// Returns nullopt if the products of the prompts alone take the devices longer than a request
  /// rate allows.
  std::optional<plan::Offer> ideal_offer(const ServedModel& model, const std::string& kv_dtype,
                                         i64 clients, i64 devices) const {
    constexpr double kSecond = 1e6;  // in microseconds
    const PlacedReplica& whole = model.whole();
    model::ReplicaWorkload workload = model.workload(whole, kv_dtype);
    const plan::HardwareProfile* hardware = &*options_.plan.hardware;
    const auto prompt = whole.pass->prefill(workload, hardware).roofline;
    const auto n = static_cast<double>(devices);
    const double prompt_us = prompt->compute_us / n;
    const auto rate = options_.request_rate;
    if (rate && *rate * prompt_us > kSecond) return std::nullopt;
    // A client's tokens are fastest where it is alone.
    if (options_.objective == plan::Objective::kUser) clients = 1;
    workload.batch = clients;
    const auto step = whole.pass->decode(workload, hardware).roofline;
    const double step_us = (step->step_us - step->comm_us - step->launch_us) / n;
    const auto others = static_cast<double>(std::max<i64>(0, clients - devices));
    const auto tokens = static_cast<double>(options_.answer_len);
    const double tpot_us = step_us + others * prompt_us / tokens;
    plan::Offer offer;
    offer.devices = devices;
    offer.ttft_us = prompt_us;
    if (options_.answer_len > 1) offer.tpot_us = tpot_us;
    offer.answer_us = offer.ttft_us + tpot_us * (tokens - 1);
    offer.tokens_per_s =
        tokens * rate.value_or(static_cast<double>(clients) / offer.answer_us * kSecond);
    offer.price_per_s = options_.plan.device.price_per_hour / kSecondsPerHour * n;
    return offer;
  }

  const SearchOptions& options_;
  SearchReport report_;
  std::vector<BeyondMemory> beyond_;
  std::optional<Architecture> first_;
  bool has_bound_ = false;
  std::unique_ptr<const ServedModel> stored_;  ///< the source as it is stored, for its casts
  std::optional<PresentLayout> present_;
  bool was_present_ = false;          ///< today's layout has the tensors of some model
  std::optional<Error> not_present_;  ///< why it does not have those of another
};

}  // namespace

std::vector<SearchedModel> SearchOptions::models() const {
  std::vector<SearchedModel> all;
  for (const std::string& source : plan.sources) {
    all.push_back({source});
    for (const Dtype dtype : dtypes) all.push_back({source, dtype});
  }
  return all;
}

SearchReport search_layouts(const SearchOptions& options) {
  check(options);
  options.cached_tokens();  // throws for an impossible share
  return Search(options).run();
}

}  // namespace shardtool::api
