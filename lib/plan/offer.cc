#include "lib/plan/offer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "lib/plan/collective/time_table.h"

namespace shardtool::plan {
namespace {

constexpr double kMillion = 1e6;
constexpr auto kObjectives =
    std::to_array<std::string_view>({"throughput", "user", "latency", "goodput", "cost"});

double per_device(const Offer& offer) {
  return offer.tokens_per_s / static_cast<double>(offer.devices);
}

double per_user(const Offer& offer) {
  return kUsPerSecond / offer.tpot_us.value_or(offer.answer_us);
}

bool breaks(const std::optional<double>& value, const std::optional<double>& limit) {
  return value && limit && *value > *limit;
}

}  // namespace

std::string_view to_string(Objective objective) {
  return kObjectives[static_cast<size_t>(objective)];
}

std::optional<Objective> objective_named(std::string_view name) {
  const auto* found = std::ranges::find(kObjectives, name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

bool is_of_devices(Objective objective) {
  return objective != Objective::kUser && objective != Objective::kLatency;
}

std::string_view broken_limit(const Offer& offer, const Limits& limits) {
  if (breaks(offer.ttft_us, limits.ttft_us)) return "ttft";
  if (breaks(offer.tpot_us, limits.tpot_us)) return "tpot";
  return breaks(offer.price_per_s, limits.price_per_s) ? "price" : "";
}

double value_of(const Offer& offer, Objective objective) {
  switch (objective) {
    case Objective::kThroughput:
    case Objective::kGoodput:
      return per_device(offer);
    case Objective::kUser:
      return per_user(offer);
    case Objective::kLatency:
      return -offer.answer_us / kUsPerSecond;
    case Objective::kCost:
      return -offer.price_per_s / offer.tokens_per_s * kMillion;
  }
  return 0;
}

std::vector<size_t> ranked(std::span<const Offer> offers, const Limits& limits,
                           Objective objective) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < offers.size(); ++i) {
    if (broken_limit(offers[i], limits).empty()) kept.push_back(i);
  }
  const auto key = [&](size_t i) {
    const Offer& offer = offers[i];
    return std::tuple(-value_of(offer, objective), offer.devices, offer.answer_us, i);
  };
  std::ranges::sort(kept, [&](size_t a, size_t b) { return key(a) < key(b); });
  return kept;
}

std::vector<size_t> pareto_front(std::span<const Offer> offers, const Limits& limits) {
  std::vector<size_t> front = ranked(offers, limits, Objective::kUser);
  std::ranges::stable_sort(front, [&](size_t a, size_t b) {
    return std::tuple(-per_user(offers[a]), -per_device(offers[a])) <
           std::tuple(-per_user(offers[b]), -per_device(offers[b]));
  });
  double most = -std::numeric_limits<double>::infinity();
  std::erase_if(front, [&](size_t i) {
    if (per_device(offers[i]) <= most) return true;
    most = per_device(offers[i]);
    return false;
  });
  std::ranges::reverse(front);
  return front;
}

}  // namespace shardtool::plan
