#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lib/api/catalogue/profiles.h"
#include "lib/api/plan_search.h"
#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/search/replica_prices.h"
#include "tests/api/planning/searched.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Searches against all layouts, one by one, as the command `plan` describes them.
namespace shardtool::api {
namespace {

using searched::kAnswer;
using searched::kPrompt;

/// One replica, and the work for which it is planned.
struct Question {
  std::string path;
  ServingLayout replica;
  std::string kv_dtype;
  i64 batch = 1;
  i64 prompt = kPrompt;
  i64 context = kPrompt + kAnswer;
  double hit = 0;

  std::string key() const {
    return fmt::format("{} {} {} {} {} {} {}", path, to_string(replica), kv_dtype, batch, prompt,
                       context, hit);
  }
};

std::optional<PlanReport> made(const Question& question) {
  PlanOptions options;
  options.sources = {question.path};
  options.mapping.mesh = mesh::parse_mesh(fmt::format("pp={},ep={},tp={}", question.replica.pp,
                                                      question.replica.ep, question.replica.tp));
  if (question.replica.expert_parallel) {
    options.mapping.settings = {{"axes.experts.mesh", R"(["ep", "tp"])"},
                                {"axes.experts.alone", "true"}};
  }
  options.hardware = load_profile("h100-sxm");
  options.workload.batch = question.batch;
  options.workload.prompt_len = question.prompt;
  options.workload.context = question.context;
  options.workload.kv_dtype = question.kv_dtype;
  options.workload.prefix_hit = question.hit;
  std::optional<PlanReport> report;
  testing::error_of([&] { report = make_plan(options); });
  return report;
}

/// Returns the answer of `plan`; nullopt for a layout that it refuses. Asks once.
const std::optional<PlanReport>& planned(Question question) {
  static std::map<std::string, std::optional<PlanReport>> answers;
  question.replica.dp = 1;
  const auto [found, is_new] = answers.try_emplace(question.key());
  if (is_new) found->second = made(question);
  return found->second;
}

/// Sequences that a replica's caches hold in this memory of a device.
i64 places_of(const Question& question, i64 bytes) {
  const auto& report = planned(question);
  if (!report) return 0;
  i64 places = i64{1} << 40;
  for (const PlanDevice& device : report->memory.devices) {
    const i64 room = bytes - (device.total - device.kv);
    places = std::min(places, room < 0 ? 0 : room / device.kv);
  }
  return places * report->memory.sequence_groups;
}

/// Returns all layouts on a number of devices, by trying all sizes.
std::vector<ServingLayout> all_layouts(i64 devices, bool has_experts) {
  const i64 layers = has_experts ? 2 : 4, experts = has_experts ? 4 : 1;
  std::vector<ServingLayout> all;
  for (i64 dp = 1; dp <= devices; ++dp) {
    for (i64 pp = 1; pp <= std::min(devices, layers); ++pp) {
      for (i64 ep = 1; ep <= std::min(devices, experts); ++ep) {
        for (i64 tp = 1; tp <= devices; ++tp) {
          if (dp * pp * ep * tp != devices) continue;
          all.push_back({dp, pp, ep, tp, false});
          if (tp > 1 && has_experts && ep * tp <= experts) all.push_back({dp, pp, ep, tp, true});
        }
      }
    }
  }
  return all;
}

/// The load of a search on one layout.
struct Candidate {
  std::string path;
  ServingLayout layout;
  std::string kv_dtype;
  i64 clients = 1;
  double hit = 0;
  i64 most = i64{1} << 40;  ///< sequences of a replica at once

  Question question() const { return {path, layout, kv_dtype}; }
  i64 each() const { return ceil_div(clients, layout.dp); }
};

/// Service of a replica with so many clients, from plans.
plan::Service service_of(const Candidate& candidate, i64 clients, bool has_experts, i64 bytes) {
  const ServingLayout& layout = candidate.layout;
  const i64 running = std::min({clients, places_of(candidate.question(), bytes), candidate.most});
  const i64 together = std::min(layout.ep, running);
  const i64 batches = std::min(layout.pp, running);
  double step_us = 0;
  for (i64 i = 0; i < batches; ++i) {
    const i64 batch = ceil_div(running - i, batches);
    const auto& step =
        *planned({candidate.path, layout, candidate.kv_dtype, batch, 1, kPrompt + kAnswer / 2});
    step_us += step_in_engine(step.cost->price->decode, load_profile("h100-sxm")).step_us;
  }
  const auto& prompt = *planned(
      {candidate.path, layout, candidate.kv_dtype, together, kPrompt, kPrompt, candidate.hit});
  return plan::service_of(
      {kPrompt, kAnswer, clients}, running,
      {step_us / static_cast<double>(batches), prompt.cost->price->prefill.roofline->step_us,
       together, layout.pp, has_experts});
}

/// Offer of a candidate: tokens of all replicas, and times of the fullest one.
plan::Offer offer_of(const Candidate& candidate, bool has_experts, i64 bytes) {
  const ServingLayout& layout = candidate.layout;
  plan::Offer offer;
  for (i64 replica = layout.dp; replica-- > 0;) {
    const i64 clients = ceil_div(candidate.clients - replica, layout.dp);
    const auto service = service_of(candidate, clients, has_experts, bytes);
    offer.tokens_per_s += static_cast<double>(clients * kAnswer) / service.answer_us() * 1e6;
    offer.ttft_us = std::max(offer.ttft_us, service.ttft_us);
    offer.tpot_us = std::max(offer.tpot_us.value_or(0), service.tpot_us);
    offer.answer_us = std::max(offer.answer_us, service.answer_us());
  }
  offer.devices = layout.devices();
  offer.price_per_s = 2 / 3600.0 * static_cast<double>(offer.devices);
  return offer;
}

bool holds(const Candidate& candidate, i64 bytes) {
  return candidate.layout.dp <= candidate.clients &&
         places_of(candidate.question(), bytes) >= candidate.each();
}

/// True if some layout on the devices that are left holds the clients.
bool survives(Candidate candidate, i64 lost, bool has_experts, i64 bytes) {
  for (i64 left = candidate.layout.devices() - lost; left > 0; --left) {
    for (const ServingLayout& layout : all_layouts(left, has_experts)) {
      candidate.layout = layout;
      if (holds(candidate, bytes)) return true;
    }
  }
  return false;
}

std::vector<Candidate> candidates_of(const SearchOptions& options, bool has_experts) {
  const i64 bytes = options.plan.device.bytes;
  std::vector<Candidate> all;
  for (const std::string& path : options.plan.sources) {
    for (const std::string& kv_dtype : options.kv_dtypes) {
      for (const i64 devices : options.devices) {
        for (const ServingLayout& layout : all_layouts(devices, has_experts)) {
          for (const i64 clients : options.concurrency) {
            const Candidate one{path, layout, kv_dtype, clients, options.prefix_hit};
            if (layout.dp > clients || places_of(one.question(), bytes) == 0) continue;
            if (options.survive > 0 && !survives(one, options.survive, has_experts, bytes))
              continue;
            all.push_back(one);
          }
        }
      }
    }
  }
  return all;
}

/// Any of the values, at least one.
template <class T>
std::vector<T> some_of(const std::vector<T>& values) {
  std::vector<T> chosen;
  const i64 first = *gen::between(0, std::ssize(values) - 1);
  for (i64 i = 0; i < std::ssize(values); ++i) {
    if (i == first || *gen::between(0, 1) == 1) chosen.push_back(values[static_cast<size_t>(i)]);
  }
  return chosen;
}

template <class T>
const T& any_of(const std::vector<T>& values) {
  return values[static_cast<size_t>(*gen::between(0, std::ssize(values) - 1))];
}

/// Any memory of a device in which some replica has a few places.
i64 any_memory(const SearchOptions& options, bool has_experts) {
  const auto layouts = all_layouts(any_of(options.devices), has_experts);
  const Question question{any_of(options.plan.sources), any_of(layouts), any_of(options.kv_dtypes)};
  const auto& report = planned(question);
  if (!report) return options.plan.device.bytes;
  const PlanDevice& fullest = report->memory.devices[report->memory.fullest];
  return fullest.total + *gen::between(-2, 20) * fullest.kv / 2;
}

SearchOptions any_search(bool has_experts) {
  SearchOptions options = searched::options_for(searched::with_experts());
  if (!has_experts)
    options.plan.sources = some_of<std::string>({searched::dense(), searched::dense_in_bf16()});
  options.kv_dtypes = some_of<std::string>({"bf16", "fp8"});
  options.concurrency = some_of<i64>({1, 5, 16});
  options.prefix_hit = any_of<double>({0, 0.5, 0.9});
  options.survive = std::max<i64>(0, *gen::between(-2, 2));
  if (*gen::between(0, 2) > 0) options.plan.device.bytes = any_memory(options, has_experts);
  options.objective = *rc::gen::element(plan::Objective::kThroughput, plan::Objective::kUser,
                                        plan::Objective::kLatency, plan::Objective::kCost,
                                        plan::Objective::kGoodput);
  return options;
}

/// Limits that some of the offers just keep.
plan::Limits any_limits(const std::vector<plan::Offer>& offers, plan::Objective objective) {
  plan::Limits limits;
  if (objective == plan::Objective::kGoodput) limits.ttft_us = 1e9;
  if (offers.empty()) return limits;
  constexpr double kRounding = 1 + 1e-9;  // this file adds in another order than the search
  if (*gen::between(0, 1) == 1) limits.tpot_us = kRounding * *any_of(offers).tpot_us;
  if (*gen::between(0, 1) == 1) limits.ttft_us = kRounding * any_of(offers).ttft_us;
  if (*gen::between(0, 1) == 1) limits.price_per_s = any_of(offers).price_per_s;
  return limits;
}

/// Returns the candidates with every smaller number of sequences at once.
std::vector<Candidate> capped(const std::vector<Candidate>& candidates, i64 bytes) {
  std::vector<Candidate> all;
  for (Candidate one : candidates) {
    one.most = std::min(one.each(), places_of(one.question(), bytes));
    while (--one.most > 0) all.push_back(one);
  }
  return all;
}

Candidate candidate_of(const SearchOptions& /*options*/, const ServingRow& row) {
  return {row.model.source, row.layout, row.kv_dtype, row.concurrency};
}

TEST_CASE("the optimum of a search is that of all layouts, and below its bound") {
  CHECK(rc::check("search", [] {
    const bool has_experts = *gen::between(0, 2) == 0;
    SearchOptions options = any_search(has_experts);
    const i64 bytes = options.plan.device.bytes;
    const auto candidates = candidates_of(options, has_experts);
    std::vector<plan::Offer> offers;
    for (const Candidate& one : candidates) offers.push_back(offer_of(one, has_experts, bytes));
    options.limits = any_limits(offers, options.objective);
    if (options.objective != plan::Objective::kUser) {
      for (const Candidate& one : capped(candidates, bytes))
        offers.push_back(offer_of(one, has_experts, bytes));
    }
    const SearchReport report = search_layouts(options);
    RC_TAG(report.optimum.has_value(), options.survive > 0, report.rows.empty());
    const auto has_no_cap = [](const ServingRow& row) { return !row.cap(); };
    RC_ASSERT(std::ranges::count_if(report.rows, has_no_cap) == std::ssize(candidates));
    for (const ServingRow& row : report.rows) {
      RC_ASSERT(row.fallback.has_value() == (options.survive > 0));
      if (!row.fallback) continue;
      Candidate left = candidate_of(options, row);
      left.layout = *row.fallback;
      RC_ASSERT(left.layout.devices() <= row.layout.devices() - options.survive);
      RC_ASSERT(holds(left, bytes));
    }
    const auto order = plan::ranked(offers, options.limits, options.objective);
    RC_ASSERT(report.optimum.has_value() == !order.empty());
    if (order.empty()) return;
    const double best = plan::value_of(offers[order.front()], options.objective);
    RC_ASSERT(std::abs(report.value - best) <= 1e-9 * std::abs(best));
    RC_ASSERT(report.value <= report.bound);
  }));
}

TEST_CASE("a limit never improves what a search finds") {
  CHECK(rc::check("limits", [] {
    SearchOptions options = any_search(*gen::between(0, 2) == 0);
    if (options.objective == plan::Objective::kGoodput) options.limits.ttft_us = 1e9;
    const SearchReport free = search_layouts(options);
    if (free.rows.empty()) return;
    options.limits.tpot_us =
        *any_of(free.rows).offer.tpot_us * static_cast<double>(*gen::between(5, 15)) / 10;
    const SearchReport limited = search_layouts(options);
    RC_TAG(limited.optimum.has_value(), std::string(plan::to_string(options.objective)));
    if (limited.optimum) RC_ASSERT(limited.value <= free.value + 1e-9 * std::abs(free.value));
  }));
}

}  // namespace
}  // namespace shardtool::api
