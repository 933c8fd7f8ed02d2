#include "lib/api/planning/search/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace shardtool::api {
namespace {

bool is_same_layout(const ServingRow& a, const ServingRow& b) {
  return a.model == b.model && a.layout == b.layout && a.kv_dtype == b.kv_dtype;
}

/// Devices' time per token for objectives of devices, a client's time for those of a client.
double weight_of(const ServingRow& row, plan::Objective objective) {
  return plan::is_of_devices(objective) ? row.devices_per_client : 1;
}

/// Returns the part of an answer's time that grew most from the optimum to the loser.
std::string grown_part(const ServingRow& best, const ServingRow& loser, plan::Objective objective) {
  const double of_best = weight_of(best, objective);
  const double of_loser = weight_of(loser, objective);
  const auto growth = [&](const TimePart<AnswerParts>& part) {
    return loser.parts.*part.member * of_loser - best.parts.*part.member * of_best;
  };
  return std::ranges::max_element(kAnswerParts, {}, growth)->words;
}

/// Returns by how much a value is below the best, as a fraction of the best.
double shortfall(double best, double value) {
  return (best - value) / std::abs(best);
}

Loss loss_of(const SearchReport& report, size_t row, plan::Objective objective) {
  if (row == report.optimum) return {row, 0, ""};
  const double by = shortfall(report.value, plan::value_of(report.rows[row].offer, objective));
  return {row, by, grown_part(report.rows[*report.optimum], report.rows[row], objective)};
}

void add_losses(const std::vector<size_t>& order, plan::Objective objective, SearchReport& report) {
  const ServingRow& best = report.rows[*report.optimum];
  for (const size_t i : order) {
    const ServingRow& row = report.rows[i];
    if (is_same_layout(row, best)) continue;
    const auto is_seen = [&](const Loss& loss) {
      return is_same_layout(report.rows[loss.row], row);
    };
    if (std::ranges::any_of(report.losses, is_seen)) continue;
    report.losses.push_back(loss_of(report, i, objective));
    if (!report.runner_up) report.runner_up = i;
  }
}

/// Adds the best row that each limit excludes, if it is better than the optimum.
void add_limits(const SearchOptions& options, const std::vector<plan::Offer>& offers,
                SearchReport& report) {
  std::set<std::string_view> seen;
  for (const size_t i : plan::ranked(offers, {}, options.objective)) {
    const std::string_view limit = plan::broken_limit(offers[i], options.limits);
    if (limit.empty() || !seen.insert(limit).second) continue;
    const double value = plan::value_of(offers[i], options.objective);
    if (report.optimum && value <= report.value) continue;
    const double gain = report.optimum ? -shortfall(report.value, value) : 0;
    const double found = limit == "ttft"   ? offers[i].ttft_us / 1e3
                         : limit == "tpot" ? *offers[i].tpot_us / 1e3
                                           : offers[i].price_per_s * 3600;
    report.bindings.push_back(
        {std::string(limit), i, to_string(report.rows[i].layout), gain,
         fmt::format("{:.3g} {}", found, limit == "price" ? "per hour" : "ms")});
  }
}

/// Adds the best layout that memory excludes, or has wait, if it is better than the optimum.
void add_memory(const SearchOptions& options, const std::vector<BeyondMemory>& beyond,
                SearchReport& report) {
  std::vector<plan::Offer> offers;
  for (const BeyondMemory& one : beyond) offers.push_back(one.row.offer);
  const auto order = plan::ranked(offers, options.limits, options.objective);
  if (order.empty()) return;
  const double value = plan::value_of(offers[order.front()], options.objective);
  if (report.optimum && value <= report.value) return;
  const BeyondMemory& best = beyond[order.front()];
  report.bindings.push_back({"memory", std::nullopt, to_string(best.row.layout),
                             report.optimum ? -shortfall(report.value, value) : 0, best.reason});
}

/// Copies rows into another report, each once.
class NamedRows {
 public:
  NamedRows(const SearchReport& from, SearchReport& to) : from_(from), to_(to) {}

  void move(size_t& row) {
    const auto [found, is_new] = moved_.try_emplace(row, to_.rows.size());
    if (is_new) to_.rows.push_back(from_.rows[row]);
    row = found->second;
  }
  void move(std::optional<size_t>& row) {
    if (row) move(*row);
  }

 private:
  const SearchReport& from_;
  SearchReport& to_;
  std::map<size_t, size_t> moved_;
};

}  // namespace

SearchReport with_named_rows(const SearchReport& report, size_t most) {
  SearchReport named = report;
  named.rows.clear();
  named.losses.resize(std::min(most, named.losses.size()));
  NamedRows rows(report, named);
  rows.move(named.optimum);
  rows.move(named.runner_up);
  for (Loss& loss : named.losses) rows.move(loss.row);
  for (Loss& loss : named.front) rows.move(loss.row);
  for (Binding& binding : named.bindings) rows.move(binding.row);
  return named;
}

void choose(const SearchOptions& options, const std::vector<BeyondMemory>& beyond,
            SearchReport& report) {
  std::vector<plan::Offer> offers;
  for (const ServingRow& row : report.rows) offers.push_back(row.offer);
  const auto order = plan::ranked(offers, options.limits, options.objective);
  if (!order.empty()) {
    report.optimum = order.front();
    report.value = plan::value_of(offers[order.front()], options.objective);
    add_losses(order, options.objective, report);
  }
  add_limits(options, offers, report);
  add_memory(options, beyond, report);
  for (const size_t row : plan::pareto_front(offers, options.limits))
    report.front.push_back(loss_of(report, row, options.objective));
}

}  // namespace shardtool::api
