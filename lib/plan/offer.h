#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

/// The choice among layouts by what they offer.
namespace shardtool::plan {

/// The quantity that a search improves.
enum class Objective { kThroughput, kUser, kLatency, kGoodput, kCost };
/// "throughput" (per device), "user" (tokens per second of one), "latency", "goodput", "cost".
std::string_view to_string(Objective objective);
/// Returns the objective of that name, or nullopt.
std::optional<Objective> objective_named(std::string_view name);
/// Tells if an objective is about the devices' time, and not about that of a client.
bool is_of_devices(Objective objective);

/// A layout that serves a load.
struct Offer {
  i64 devices = 1;
  double ttft_us = 0;             ///< time to the first token
  std::optional<double> tpot_us;  ///< time per output token after the first; absent: there is none
  double answer_us = 0;           ///< time of a whole answer
  double tokens_per_s = 0;        ///< of all devices
  double price_per_s = 0;         ///< of all devices; 0: not given
};

/// Limits of an offer; absent: none.
struct Limits {
  std::optional<double> ttft_us;
  std::optional<double> tpot_us;
  std::optional<double> price_per_s;
};

/// Returns the limit that an offer breaks: "ttft", "tpot" or "price"; empty if it keeps all.
std::string_view broken_limit(const Offer& offer, const Limits& limits);

/// Returns the offer's value; more is better. In this order: tokens per second and device; tokens
/// per second of a user, after the first if there are any; minus the seconds of an answer; tokens
/// per second and device; minus the price of a million tokens.
double value_of(const Offer& offer, Objective objective);

/// Returns the offers that keep the limits, the best first; of equal ones those with fewer devices,
/// then those with faster answers, then those that came first.
std::vector<size_t> ranked(std::span<const Offer> offers, const Limits& limits,
                           Objective objective);

/// Returns the offers that keep the limits and that no other such offer beats both in tokens per
/// second and device and in tokens per second of a user; of equal ones the first. Ascending in the
/// second.
std::vector<size_t> pareto_front(std::span<const Offer> offers, const Limits& limits);

}  // namespace shardtool::plan
