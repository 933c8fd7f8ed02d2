#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/print/html/pages.h"
#include "cli/print/search/search.h"
#include "cli/print/search/training.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/api/plan_search.h"
#include "tests/cli/print/html_page.h"

namespace shardtool::cli {
namespace {

using nlohmann::json;

api::SearchOptions search_for(plan::Objective objective, std::optional<double> tpot_us) {
  api::SearchOptions options;
  options.plan.sources = {kTinyLlama};
  options.plan.hardware = api::load_profile("h100-sxm");
  options.plan.device.bytes = options.plan.hardware->usable_bytes;
  options.plan.device.price_per_hour = 2;
  options.devices = {1, 2, 3, 4};
  options.concurrency = {1, 16, 64};
  options.prompt_len = options.answer_len = 32;
  options.objective = objective;
  options.limits.tpot_us = tpot_us;
  return options;
}

std::string document_of(const api::SearchOptions& options, const api::SearchReport& report) {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, "plan_search",
                           report.optimum ? "ok" : "findings");
  write_fields(out, options, report);
  out.end_object();
  return text;
}

TEST_CASE("every number of a search's page is that of its document") {
  using plan::Objective;
  for (const Objective objective : {Objective::kThroughput, Objective::kUser, Objective::kLatency,
                                    Objective::kGoodput, Objective::kCost}) {
    const api::SearchOptions options = search_for(objective, 200.0);
    const api::SearchReport report = api::search_layouts(options);
    REQUIRE(report.optimum);
    const std::string document = document_of(options, api::with_named_rows(report, 200));
    const std::string page = html_page(document);
    CHECK(check_numbers(page) > 200);
    CHECK(island_of(page) == json::parse(document));
    const std::string best = report.rows[*report.optimum].layout.tp == 1 ? "tp=1" : "tp=";
    CHECK(page.find("Best: ") < page.find(best));
  }
  const api::SearchOptions none = search_for(Objective::kThroughput, 0.1);
  const std::string page = html_page(document_of(none, api::search_layouts(none)));
  CHECK(check_numbers(page) > 5);
  CHECK(page.find("No layout fits and keeps the limits.") != std::string::npos);
}

TEST_CASE(
    "a search's page tells an open load, cached prompts, fallbacks and answers of one token") {
  const auto page_of = [](const api::SearchOptions& options) {
    const api::SearchReport report = api::search_layouts(options);
    REQUIRE(report.optimum);
    const std::string page = html_page(document_of(options, report));
    CHECK(check_numbers(page) > 50);
    return page;
  };
  const auto has = [](const std::string& page, const char* words) {
    return page.find(words) != std::string::npos;
  };
  api::SearchOptions options = search_for(plan::Objective::kThroughput, std::nullopt);
  options.concurrency.clear();
  options.request_rate = 50;
  options.prefix_hit = 0.5;
  options.devices = {2, 4};
  options.survive = 1;
  const std::string open = page_of(options);
  for (const char* words : {" requests/s", " of them cached", " at once: ", " holds the load.",
                            "falls back to", "devices/request", "the shade is the front"})
    CHECK(has(open, words));
  options = search_for(plan::Objective::kThroughput, std::nullopt);
  options.answer_len = 1;
  const std::string one = page_of(options);
  CHECK(has(one, ", TPOT -."));
  CHECK_FALSE(has(one, "the shade is the front"));
}

TEST_CASE("the points of a front rise to the left and have their values") {
  const api::SearchOptions options = search_for(plan::Objective::kThroughput, std::nullopt);
  const api::SearchReport report = api::search_layouts(options);
  const std::string page = html_page(document_of(options, report));
  const std::regex point(
      "<circle class=\"f0\" cx=\"([^\"]*)\" cy=\"([^\"]*)\" r=\"[^\"]*\" "
      "data-at=\"[^\"]*\" data-value=\"([^\"]*)\"");
  double x = -1, y = 1e9, scale = 0;
  size_t count = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), point), last; it != last; ++it, ++count) {
    CHECK(std::stod((*it)[1]) > x);
    CHECK(std::stod((*it)[2]) > 0);
    x = std::stod((*it)[1]);
    const double height = 350 - std::stod((*it)[2]);
    if (scale > 0) CHECK(height / std::stod((*it)[3]) == doctest::Approx(scale).epsilon(0.01));
    scale = height / std::stod((*it)[3]);
    CHECK(height < y);
    y = height;
  }
  CHECK(count == report.front.size());
  CHECK(count > 1);
}

api::TrainSearchOptions training_for(std::vector<i64> devices, i64 bytes) {
  api::TrainSearchOptions options;
  options.plan.sources = {kTinyLlama};
  options.plan.hardware = api::load_profile("h100-sxm");
  options.plan.device.bytes = bytes;
  options.devices = std::move(devices);
  options.sequence = 128;
  options.batch = 16;
  for (i64 part = 1; part < 8; ++part) options.smaller_budgets.push_back(bytes / 8 * part);
  return options;
}

std::string document_of(const api::TrainSearchOptions& options,
                        const api::TrainSearchReport& report) {
  std::string text;
  auto out = open_document([&text](std::string_view part) { text += part; }, "plan_search_train",
                           report.optimum ? "ok" : "findings");
  write_fields(out, options, report);
  out.end_object();
  return text;
}

TEST_CASE("every number of a training's page is that of its document") {
  for (const auto& devices : {std::vector<i64>{1}, {2}, {1, 2, 4}}) {
    for (const i64 bytes : {i64{3'500'000}, i64{80'000'000}}) {
      const api::TrainSearchOptions options = training_for(devices, bytes);
      const api::TrainSearchReport report = api::search_training(options);
      const std::string document = document_of(options, api::with_named_rows(report, 200));
      const std::string page = html_page(document);
      CHECK(check_numbers(page) > (report.optimum ? 30 : 2));
      CHECK(island_of(page) == json::parse(document));
      if (!report.optimum) continue;
      const json island = island_of(page);
      const json& best = island.at("rows").at(island.at("optimum").get<size_t>());
      CHECK(best.at("name") == to_string(report.rows[*report.optimum].way));
      CHECK(page.find("Best: " + best.at("name").get<std::string>()) != std::string::npos);
      CHECK(island.at("losses").size() == report.losses.size());
    }
  }
  const api::TrainSearchOptions none = training_for({1}, 100'000);
  const std::string page = html_page(document_of(none, api::search_training(none)));
  CHECK(check_numbers(page) > 2);
  CHECK(page.find("No way to train fits.") != std::string::npos);
}

TEST_CASE("the stages of a training take the memory that their bars have") {
  const api::TrainSearchOptions options = training_for({2}, 3'500'000);
  const api::TrainSearchReport report = api::search_training(options);
  REQUIRE(report.optimum);
  const json island = island_of(html_page(document_of(options, api::with_named_rows(report, 200))));
  for (const json& stage : island.at("rows").at(island.at("optimum").get<size_t>()).at("stages")) {
    i64 sum = 0;
    for (const char* part : {"state_bytes", "gathered_bytes", "activation_bytes"})
      sum += stage.at(part).get<i64>();
    CHECK(sum == stage.at("total_bytes").get<i64>());
    CHECK(stage.at("total_bytes").get<i64>() <= island.at("budget_bytes").get<i64>());
  }
}

}  // namespace
}  // namespace shardtool::cli
