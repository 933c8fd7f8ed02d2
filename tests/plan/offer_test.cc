#include "lib/plan/offer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "tests/support/generators.h"

using namespace shardtool;
using plan::Limits;
using plan::Objective;
using plan::Offer;

namespace {

constexpr Objective kObjectives[] = {Objective::kThroughput, Objective::kUser, Objective::kLatency,
                                     Objective::kGoodput, Objective::kCost};

/// Small numbers, so that offers are often equal.
Offer any_offer() {
  const auto number = [] { return static_cast<double>(*gen::between(1, 6)); };
  std::optional<double> tpot_us = number();
  if (*gen::between(0, 5) == 0) tpot_us.reset();
  return {*gen::between(1, 4), number(), tpot_us, number(), number(), number()};
}

std::vector<Offer> any_offers() {
  std::vector<Offer> offers(static_cast<size_t>(*gen::between(0, 8)));
  std::ranges::generate(offers, any_offer);
  return offers;
}

Limits any_limits() {
  const auto limit = [] {
    const i64 number = *gen::between(0, 6);
    return number == 0 ? std::nullopt : std::optional(static_cast<double>(number));
  };
  return {limit(), limit(), limit()};
}

bool keeps(const Offer& offer, const Limits& limits) {
  return offer.ttft_us <= limits.ttft_us.value_or(9) &&
         offer.tpot_us.value_or(0) <= limits.tpot_us.value_or(9) &&
         offer.price_per_s <= limits.price_per_s.value_or(9);
}

bool beats(const Offer& a, const Offer& b) {
  const auto better = [&](Objective objective) {
    return plan::value_of(a, objective) - plan::value_of(b, objective);
  };
  const double device = better(Objective::kThroughput);
  const double user = better(Objective::kUser);
  return device >= 0 && user >= 0 && (device > 0 || user > 0);
}

}  // namespace

TEST_CASE("an objective is found by its name") {
  for (const Objective objective : kObjectives)
    CHECK(plan::objective_named(plan::to_string(objective)) == objective);
  CHECK_FALSE(plan::objective_named("speed"));
}

TEST_CASE("the best offer is that of a search through all") {
  CHECK(rc::check("ranked", [] {
    const auto offers = any_offers();
    const Limits limits = any_limits();
    const Objective objective =
        *rc::gen::elementOf(std::vector(std::begin(kObjectives), std::end(kObjectives)));
    std::optional<double> best;
    i64 kept = 0;
    for (const Offer& offer : offers) {
      RC_ASSERT(keeps(offer, limits) == plan::broken_limit(offer, limits).empty());
      if (!keeps(offer, limits)) continue;
      ++kept;
      best = std::max(best.value_or(-1e9), plan::value_of(offer, objective));
    }
    const auto order = plan::ranked(offers, limits, objective);
    RC_ASSERT(std::ssize(order) == kept);
    if (best) RC_ASSERT(plan::value_of(offers[order.front()], objective) == *best);
    for (size_t i = 1; i < order.size(); ++i) {
      const Offer &one = offers[order[i - 1]], &next = offers[order[i]];
      RC_ASSERT(std::tuple(-plan::value_of(one, objective), one.devices, one.answer_us) <=
                std::tuple(-plan::value_of(next, objective), next.devices, next.answer_us));
    }
  }));
}

TEST_CASE("no offer beats one of the front, and one of the front beats every other") {
  CHECK(rc::check("pareto", [] {
    const auto offers = any_offers();
    const Limits limits = any_limits();
    const auto front = plan::pareto_front(offers, limits);
    for (size_t i = 0; i < offers.size(); ++i) {
      if (!keeps(offers[i], limits)) continue;
      const bool is_in = std::ranges::find(front, i) != front.end();
      const bool is_met = std::ranges::any_of(front, [&](size_t f) {
        const bool equal = !beats(offers[f], offers[i]) && !beats(offers[i], offers[f]) &&
                           plan::value_of(offers[f], Objective::kUser) ==
                               plan::value_of(offers[i], Objective::kUser);
        return f != i && (beats(offers[f], offers[i]) || equal);
      });
      RC_ASSERT(is_in != is_met);
    }
  }));
}

TEST_CASE(
    "an answer of one token has the speed of its whole, and keeps every limit on later ones") {
  Offer offer;
  offer.answer_us = 250'000;
  CHECK(plan::value_of(offer, Objective::kUser) == 4);
  CHECK(plan::broken_limit(offer, {std::nullopt, 0.001, std::nullopt}).empty());
}

TEST_CASE("a limit that is reached is kept") {
  const Offer offer{1, 10, 5, 100, 1, 2};
  CHECK(plan::broken_limit(offer, {}).empty());
  CHECK(plan::broken_limit(offer, {10, 5, 2}).empty());
  CHECK(plan::broken_limit(offer, {9, 4, 1}) == "ttft");
  CHECK(plan::broken_limit(offer, {10, 4, 1}) == "tpot");
  CHECK(plan::broken_limit(offer, {10, 5, 1}) == "price");
}
