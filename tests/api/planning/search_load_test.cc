#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lib/api/plan_search.h"
#include "tests/api/planning/searched.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Searches for open loads, for prompts in the cache, and for answers of one token.
namespace shardtool::api {
namespace {

using searched::dense;
using searched::kAnswer;
using searched::kPrompt;
using searched::options_for;
using searched::with_experts;

SearchOptions any_model() {
  SearchOptions options = options_for(*gen::between(0, 1) == 0 ? dense() : with_experts());
  options.plan.workload.sequence_parallel = *gen::between(0, 1) == 1;
  return options;
}

/// Returns the search for one layout alone.
SearchOptions for_layout(SearchOptions options, const ServingLayout& layout) {
  options.devices = {layout.devices()};
  options.pinned = {layout.pp, layout.ep, layout.tp, layout.expert_parallel};
  return options;
}

const ServingRow* row_of(const SearchReport& report, const ServingRow& like) {
  const auto found = std::ranges::find_if(report.rows, [&](const ServingRow& row) {
    return row.layout == like.layout && row.sequence_parallel == like.sequence_parallel;
  });
  return found == report.rows.end() ? nullptr : &*found;
}

const ServingRow& any_row(const SearchReport& report) {
  return report.rows[static_cast<size_t>(*gen::between(0, std::ssize(report.rows) - 1))];
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

bool is_same(const ServingRow& a, const ServingRow& b) {
  return a.concurrency == b.concurrency && a.fits == b.fits &&
         a.service.running == b.service.running && is_near(a.offer.ttft_us, b.offer.ttft_us) &&
         is_near(*a.offer.tpot_us, *b.offer.tpot_us) &&
         is_near(a.offer.answer_us, b.offer.answer_us) &&
         is_near(a.offer.tokens_per_s, b.offer.tokens_per_s) &&
         is_near(a.devices_per_client, b.devices_per_client);
}

ServingRow of_clients(SearchOptions options, const ServingRow& like, i64 clients) {
  options = for_layout(std::move(options), like.layout);
  options.request_rate.reset();
  options.concurrency = {clients};
  const SearchReport report = search_layouts(options);
  const ServingRow* const row = row_of(report, like);
  RC_ASSERT(row != nullptr);
  return *row;
}

TEST_CASE("a rate leads to the fewest clients that answer it, and they lead to the same row") {
  CHECK(rc::check("open loads", [] {
    SearchOptions options = any_model();
    options.concurrency.clear();
    options.request_rate = std::pow(10, static_cast<double>(*gen::between(0, 36)) / 10);
    const double tokens_per_s = *options.request_rate * static_cast<double>(kAnswer);
    const SearchReport report = search_layouts(options);
    if (report.optimum) RC_ASSERT(report.value <= report.bound);
    for (const ServingRow& row : report.rows) {
      RC_ASSERT(is_near(row.offer.tokens_per_s, tokens_per_s));
      RC_ASSERT(row.concurrency % row.layout.dp == 0);
    }
    if (report.rows.empty()) return;
    const ServingRow& row = any_row(report);
    const ServingRow closed = of_clients(options, row, row.concurrency);
    RC_ASSERT(is_near(closed.offer.answer_us, row.offer.answer_us));
    RC_ASSERT(closed.offer.tokens_per_s >= tokens_per_s * (1 - 1e-9));
    if (row.concurrency == row.layout.dp) return;
    const ServingRow fewer = of_clients(options, row, row.concurrency - row.layout.dp);
    RC_ASSERT(fewer.offer.tokens_per_s < tokens_per_s);
  }));
}

TEST_CASE("clients lead to a rate, and it leads to the same row") {
  CHECK(rc::check("closed loads", [] {
    SearchOptions options = any_model();
    const i64 each = *gen::between(1, 20);
    options.concurrency = {4 * each};
    const SearchReport report = search_layouts(options);
    const ServingRow& row = any_row(report);
    SearchOptions open = for_layout(options, row.layout);
    open.concurrency.clear();
    open.request_rate = row.offer.tokens_per_s / static_cast<double>(kAnswer);
    const SearchReport found = search_layouts(open);
    RC_ASSERT(row_of(found, row) != nullptr);
    RC_ASSERT(is_same(*row_of(found, row), row));
  }));
}

TEST_CASE("a layout that cannot serve a rate is refused with the greatest one that it can") {
  SearchOptions options = options_for(dense());
  options.devices = {1};
  const ServingRow roomy = search_layouts(options).rows.front();
  options.plan.device.bytes = roomy.total + 3 * roomy.per_sequence;
  options.concurrency.clear();
  options.request_rate = 1e6;
  const SearchReport none = search_layouts(options);
  CHECK(none.rows.empty());
  REQUIRE(none.refused.size() == 1);
  CHECK(none.refused.front().constraint == "rate");
  double most = 0;
  REQUIRE(std::sscanf(none.refused.front().reason.c_str(), "at most %lf requests per second, and 4",
                      &most) == 1);
  options.request_rate = most;
  const SearchReport served = search_layouts(options);
  REQUIRE(served.rows.size() == 1);
  CHECK(served.rows.front().concurrency == 4);
  options.request_rate = 1.01 * most;
  const SearchReport refused = search_layouts(options);
  CHECK(refused.rows.empty());
  // With more memory the caches hold one more, which is enough.
  REQUIRE(refused.bindings.size() == 1);
  CHECK(refused.bindings.front().constraint == "memory");
  CHECK(refused.bindings.front().reason == "caches hold 4 of 5 sequences");
}

TEST_CASE("of layouts that serve a rate on as many devices the one with faster answers is best") {
  SearchOptions options = options_for(dense());
  options.devices = {4};
  options.concurrency.clear();
  options.request_rate = 50;
  const SearchReport report = search_layouts(options);
  REQUIRE(report.rows.size() > 3);
  for (const ServingRow& row : report.rows)
    CHECK(row.offer.answer_us >= report.rows[*report.optimum].offer.answer_us);
}

TEST_CASE("the more of a prompt is cached, the sooner its answer begins and ends") {
  CHECK(rc::check("prefix", [] {
    SearchOptions options = any_model();
    options.concurrency = {*gen::between(4, 40)};
    const auto share = [] { return static_cast<double>(*gen::between(0, 99)) / 100; };
    double less = share(), more = share();
    if (less > more) std::swap(less, more);
    options.prefix_hit = less;
    const SearchReport of_less = search_layouts(options);
    options.prefix_hit = more;
    const SearchReport of_more = search_layouts(options);
    RC_ASSERT(of_less.rows.size() == of_more.rows.size());
    for (const ServingRow& row : of_less.rows) {
      const ServingRow* const other = row_of(of_more, row);
      RC_ASSERT(other != nullptr);
      RC_ASSERT(other->fits == row.fits);
      RC_ASSERT(other->service.step_us == row.service.step_us);
      RC_ASSERT(other->service.prompt_us <= row.service.prompt_us);
      RC_ASSERT(other->offer.answer_us <= row.offer.answer_us);
    }
    RC_ASSERT(of_more.value <= of_more.bound);
  }));
}

TEST_CASE("a share of k in n of the tokens is exact, and leaves at least one to compute") {
  CHECK(rc::check("share", [] {
    const i64 n = *gen::between(1, 1000), each = *gen::between(1, 1000);
    const i64 k = *gen::between(0, n - 1);
    SearchOptions options;
    options.prompt_len = n * each;
    options.prefix_hit = static_cast<double>(k) / static_cast<double>(n);
    RC_ASSERT(options.cached_tokens() == k * each);
    options.prefix_hit = 1 - 1 / static_cast<double>(n);
    RC_ASSERT(options.cached_tokens() == options.prompt_len - each);
    options.prefix_hit = static_cast<double>(*gen::between(0, 999'999)) / 1'000'000;
    RC_ASSERT(options.cached_tokens() >= 0);
    RC_ASSERT(options.cached_tokens() < options.prompt_len);
  }));
}

TEST_CASE("an answer of one token has no time per later token") {
  SearchOptions options = options_for(dense());
  options.answer_len = 1;
  for (const auto objective : {plan::Objective::kThroughput, plan::Objective::kUser}) {
    options.objective = objective;
    const SearchReport report = search_layouts(options);
    REQUIRE(report.optimum);
    CHECK(report.value <= report.bound);
    for (const ServingRow& row : report.rows) {
      CHECK_FALSE(row.offer.tpot_us);
      CHECK(row.offer.answer_us == row.offer.ttft_us);
    }
  }
}

TEST_CASE("an impossible load is refused") {
  const auto search = [](const auto& change) {
    SearchOptions options = options_for(dense());
    change(options);
    return search_layouts(options);
  };
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.request_rate = 1; }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) {
                o.concurrency.clear();
                o.request_rate = 0;
              }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.prefix_hit = 1; }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.prefix_hit = -0.1; }));
}

}  // namespace
}  // namespace shardtool::api
