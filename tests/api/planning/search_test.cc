#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "lib/api/plan_search.h"
#include "lib/api/planning/search/layout_space.h"
#include "lib/api/transform.h"
#include "tests/api/planning/searched.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using searched::dense;
using searched::dense_in_bf16;
using searched::options_for;
using searched::with_experts;

TEST_CASE("activations that are cut by tokens are tried beside those that are not") {
  SearchOptions options = options_for(dense());
  const SearchReport plain = search_layouts(options);
  options.plan.workload.sequence_parallel = true;
  const SearchReport both = search_layouts(options);
  CHECK(both.value >= plain.value);
  const auto count = [&](bool is_cut) {
    return std::ranges::count(both.rows, is_cut, &ServingRow::sequence_parallel);
  };
  CHECK(count(false) == std::ssize(plain.rows));
  CHECK(count(true) ==
        std::ranges::count_if(plain.rows, [](const auto& row) { return row.layout.tp > 1; }));
}

TEST_CASE("a layout that split refuses is excluded with the words of split") {
  const StoredModel few_heads(mapping::tiny_llama({.layers = 3, .kv_heads = 2}));
  SearchOptions options = options_for(few_heads.path());
  options.devices = {3};
  const SearchReport report = search_layouts(options);
  PlanOptions cut = options.plan;
  cut.mapping.mesh = mesh::Mesh({{"tp", 3}});
  const auto error = testing::error_of([&] { make_plan(cut); });
  REQUIRE(error.has_value());
  REQUIRE(report.refused.size() == 1);
  CHECK(report.refused.front().layout == ServingLayout{1, 1, 1, 3});
  CHECK(report.refused.front().constraint == "cut");
  CHECK(report.refused.front().reason == error->what());
}

TEST_CASE("layouts with more pipeline stages than layers are refused with the reason") {
  const StoredModel shallow(mapping::tiny_llama({.layers = 2, .kv_heads = 4}));
  SearchOptions options = options_for(shallow.path());
  options.devices = {4, 8};
  std::map<std::string, std::string> reasons;
  for (const RefusedLayout& refused : search_layouts(options).refused) {
    if (refused.layout.pp <= 2) continue;
    CHECK(refused.constraint == "cut");
    reasons[to_string(refused.layout)] = refused.reason;
  }
  const std::string four = "the model has 2 layers, and every stage of pp=4 needs one";
  const std::string eight = "the model has 2 layers, and every stage of pp=8 needs one";
  CHECK(reasons == std::map<std::string, std::string>{{"pp=4 tp=1", four},
                                                      {"pp=4 tp=2", four},
                                                      {"dp=2 pp=4 tp=1", four},
                                                      {"pp=8 tp=1", eight}});
  options.pinned.tp = 2;
  CHECK(search_layouts(options).refused.size() == 1);
}

TEST_CASE("a layout with more replicas than clients is refused") {
  SearchOptions options = options_for(dense());
  options.concurrency = {1, 3};
  const SearchReport report = search_layouts(options);
  for (const ServingRow& row : report.rows) CHECK(row.layout.dp <= row.concurrency);
  REQUIRE(report.refused.size() == 1);
  CHECK(report.refused.front().constraint == "clients");
  CHECK(report.refused.front().layout == ServingLayout{4, 1, 1, 1});
  CHECK(report.refused.front().reason == "4 replicas for 3 clients");
}

TEST_CASE("what does not fit is excluded, and clients without a place in the cache wait") {
  SearchOptions options = options_for(dense());
  options.devices = {1};
  const SearchReport roomy = search_layouts(options);
  REQUIRE(roomy.rows.size() == 1);
  const ServingRow& row = roomy.rows.front();
  CHECK(row.service.running == 8);
  options.plan.device.bytes = row.total + 2 * row.per_sequence;
  const SearchReport tight = search_layouts(options);
  REQUIRE(tight.rows.size() == 1);
  CHECK(tight.rows.front().fits == 3);
  CHECK(tight.rows.front().service.running == 3);
  CHECK(tight.rows.front().service.queue_us > 0);
  options.plan.device.bytes = row.total - 1;
  const SearchReport none = search_layouts(options);
  CHECK(none.rows.empty());
  CHECK_FALSE(none.optimum);
  REQUIRE(none.refused.size() == 1);
  CHECK(none.refused.front().constraint == "memory");
}

/// Splits a model, and returns the folder of the output.
std::string split_over(const std::string& path, const test::TempFolder& folder, i64 tp) {
  SplitOptions options;
  options.source = path;
  options.mapping.mesh = mesh::Mesh({{"tp", tp}});
  options.write.output = folder.path() + fmt::format("/tp{}", tp);
  split(options);
  return options.write.output;
}

TEST_CASE("a move from today's layout costs what plan says of the reshard") {
  const test::TempFolder folder;
  const std::string today = split_over(dense(), folder, 2);
  SearchOptions options = options_for(dense());
  options.from = today;
  const SearchReport report = search_layouts(options);
  REQUIRE(report.rows.size() > 5);
  for (const ServingRow& row : report.rows) {
    const ServingLayout& layout = row.layout;
    PlanOptions reshard;
    reshard.sources = {today};
    reshard.hardware = options.plan.hardware;
    reshard.to_mesh =
        mesh::parse_mesh(fmt::format("dp={},pp={},tp={}", layout.dp, layout.pp, layout.tp));
    const PlanReport planned = make_plan(reshard);
    REQUIRE(row.move);
    CHECK(row.move->bytes_moved == planned.reshard->bytes_moved);
    CHECK(row.move->bytes_kept == planned.reshard->bytes_kept);
    CHECK(row.move->renumbered == planned.reshard->renumbering->bytes_moved);
    CHECK(row.move->us == planned.reshard_time->network_us.value_or(0));
    CHECK((row.move->bytes_moved == 0) == (layout == ServingLayout{1, 1, 1, 2}));
  }
}

TEST_CASE("a plan's layout is one to move from, and other tensors are not") {
  const test::TempFolder folder;
  PlanOptions reshard;
  reshard.sources = {split_over(dense(), folder, 2)};
  reshard.to_mesh = mesh::Mesh({{"tp", 4}});
  reshard.recipe = true;
  const std::string recipe = make_plan(reshard).recipe;
  const std::string open = fmt::format(
      R"({{"format_version":"1.0","tool":{{"name":"shardtool","version":"{}"}},"apply":{})",
      SHARDTOOL_VERSION, recipe);
  folder.write("plan.json", sealed(open));
  SearchOptions options = options_for(dense());
  options.from = folder.path() + "/plan.json";
  for (const ServingRow& row : search_layouts(options).rows)
    CHECK((row.move->bytes_moved == 0) == (row.layout == ServingLayout{1, 1, 1, 4}));

  options.plan.sources = {dense_in_bf16(), dense()};
  const SearchReport both = search_layouts(options);
  for (const ServingRow& row : both.rows)
    CHECK(row.move.has_value() == (row.model.source == dense()));
  REQUIRE_FALSE(both.warnings.empty());
  options.plan.sources = {dense_in_bf16()};
  options.from = split_over(dense(), folder, 4);
  CHECK_ERROR(kCoverage, search_layouts(options));
  options.from = dense();
  CHECK_ERROR(kUsage, search_layouts(options));
}

TEST_CASE("a limit that keeps a better layout away is named with what it costs") {
  SearchOptions options = options_for(dense());
  options.devices = {1, 2};
  const SearchReport free = search_layouts(options);
  options.limits.tpot_us = *free.rows[*free.optimum].offer.tpot_us * 0.999;
  const SearchReport bound = search_layouts(options);
  REQUIRE(bound.optimum);
  REQUIRE_FALSE(bound.bindings.empty());
  CHECK(bound.bindings.front().constraint == "tpot");
  CHECK(bound.bindings.front().layout == to_string(free.rows[*free.optimum].layout));
  CHECK(bound.bindings.front().gain == doctest::Approx(free.value / bound.value - 1));
}

TEST_CASE("the parts of an answer are its time, and sizes that are given are kept") {
  SearchOptions options = options_for(with_experts());
  options.pinned.tp = 2;
  options.pinned.expert_parallel = true;
  const SearchReport report = search_layouts(options);
  REQUIRE_FALSE(report.rows.empty());
  for (const ServingRow& row : report.rows) {
    CHECK(row.layout.tp == 2);
    CHECK(row.layout.expert_parallel);
    const AnswerParts& parts = row.parts;
    CHECK(parts.compute + parts.memory + parts.collectives + parts.launches + parts.host +
              parts.waiting ==
          doctest::Approx(row.offer.answer_us).epsilon(1e-9));
  }
}

TEST_CASE("a report of named rows names the same rows") {
  SearchOptions options = options_for(with_experts());
  options.concurrency = {1, 5, 16};
  options.limits.tpot_us = 150;
  const SearchReport report = search_layouts(options);
  const SearchReport named = with_named_rows(report, 3);
  REQUIRE(named.losses.size() == 3);
  CHECK(named.rows.size() < report.rows.size());
  const auto check_same = [&](size_t row, size_t other) {
    CHECK(named.rows[row].layout == report.rows[other].layout);
    CHECK(named.rows[row].concurrency == report.rows[other].concurrency);
  };
  check_same(*named.optimum, *report.optimum);
  check_same(*named.runner_up, *report.runner_up);
  for (size_t i = 0; i < 3; ++i) check_same(named.losses[i].row, report.losses[i].row);
  REQUIRE(named.front.size() == report.front.size());
  for (size_t i = 0; i < named.front.size(); ++i)
    check_same(named.front[i].row, report.front[i].row);
}

TEST_CASE("a row of the front loses to the optimum by what its value is less") {
  const SearchReport report = search_layouts(options_for(dense()));
  REQUIRE(report.front.size() > 1);
  for (const Loss& loss : report.front) {
    const double value = plan::value_of(report.rows[loss.row].offer, plan::Objective::kThroughput);
    CHECK(loss.by == doctest::Approx(1 - value / report.value));
    CHECK(loss.reason.empty() == (loss.row == *report.optimum));
  }
}

TEST_CASE("the space has every factorisation once") {
  const auto space = layout_space({4, 4}, {.layers = 2, .experts = 0});
  std::vector<std::string> names;
  for (const ServingLayout& layout : space) names.push_back(to_string(layout));
  CHECK(names ==
        std::vector<std::string>{"tp=4", "pp=2 tp=2", "dp=2 tp=2", "dp=2 pp=2 tp=1", "dp=4 tp=1"});
  CHECK(layout_space({2}, {.layers = 1, .experts = 8}).size() == 4);
}

/// The reason for which no layout is in the space.
std::string exclusion(const std::vector<i64>& devices, const SpaceLimits& limits) {
  const auto error = testing::error_of([&] { layouts_of_search(devices, limits); });
  if (error) CHECK(error->code() == ErrorCode::kUsage);
  return error ? error->what() : "";
}

TEST_CASE("an empty space says which of devices, layers and experts exclude every layout") {
  CHECK(exclusion({1, 2}, {.layers = 4, .pinned = {{}, {}, 3, false}}) ==
        "no number of --devices is a multiple of tp=3");
  CHECK(exclusion({4, 6}, {.layers = 4, .pinned = {4, {}, 2, false}}) ==
        "no number of --devices is a multiple of pp=4 x tp=2");
  CHECK(exclusion({64}, {.layers = 32, .pinned = {64, {}, {}, false}}) ==
        "the model has 32 layers, and every stage of pp=64 needs one");
  const std::string none = "the model has no experts, which --ep and --expert-parallel place";
  CHECK(exclusion({2}, {.layers = 4, .pinned = {{}, 2, {}, false}}) == none);
  CHECK(exclusion({2}, {.layers = 4, .pinned = {{}, {}, {}, true}}) == none);
  CHECK(exclusion({16}, {.layers = 4, .experts = 8, .pinned = {{}, 16, {}, false}}) ==
        "the model has 8 experts, fewer than the devices that would share them");
  CHECK(exclusion({8}, {.layers = 4, .experts = 8, .pinned = {{}, {}, 1, true}}) ==
        "whole experts need at least two devices along tp");
}

TEST_CASE("a space has a layout or says why not") {
  CHECK(rc::check("space", [] {
    const auto any_size = [] {
      const i64 size = *gen::between(0, 6);
      return size == 0 ? std::nullopt : std::optional(size == 6 ? i64{1} << 31 : size);
    };
    const SpaceLimits limits{*gen::between(1, 4),
                             *gen::between(0, 4),
                             {any_size(), any_size(), any_size(), *gen::between(0, 1) == 1}};
    const std::vector<i64> devices{*gen::between(1, 12), *gen::between(1, 12)};
    RC_ASSERT(layout_space(devices, limits).empty() == !exclusion(devices, limits).empty());
  }));
}

TEST_CASE("a search of different models names them and what differs") {
  const StoredModel other(mapping::tiny_llama({.layers = 4, .kv_heads = 4, .mlp = 48}));
  const StoredModel shallow(mapping::tiny_llama({.layers = 3, .kv_heads = 4}));
  const auto error_with = [](const std::string& path) {
    SearchOptions options = options_for(dense());
    options.plan.sources.push_back(path);
    const auto error = testing::error_of([&] { search_layouts(options); });
    if (error) CHECK(error->code() == ErrorCode::kUsage);
    return error ? std::string(error->what()) : "";
  };
  CHECK(error_with(dense_in_bf16()).empty());
  CHECK(error_with(other.path()).ends_with("are not the same model: mlp is 96 and 48"));
  CHECK(error_with(other.path()).starts_with(fmt::format("'{}' and '{}'", dense(), other.path())));
  CHECK(error_with(shallow.path()).ends_with("are not the same model: layers is 4 and 3"));
  CHECK(error_with(with_experts()).ends_with("are not the same model: llama and mixtral"));
}

TEST_CASE("a model that lacks a tensor of its graph has no price, whichever tensor it is") {
  const auto model = mapping::tiny_mixtral({.layers = 1, .kv_heads = 4}, 2);
  for (const TensorSpec& spec : model.tensors) {
    CAPTURE(spec.name);
    const StoredModel incomplete(model, spec.name);
    const auto error = testing::error_of([&] { search_layouts(options_for(incomplete.path())); });
    const bool may_be_tied = spec.name == "lm_head.weight";
    CHECK(error.has_value() != may_be_tied);
  }
}

TEST_CASE("a search without hardware, devices, clients or a price that it needs is refused") {
  const auto search = [](const auto& change) {
    SearchOptions options = options_for(dense());
    change(options);
    return search_layouts(options);
  };
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.plan.hardware.reset(); }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.devices.clear(); }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.concurrency.clear(); }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) { o.objective = plan::Objective::kGoodput; }));
  CHECK_ERROR(kUsage, search([](SearchOptions& o) {
                o.objective = plan::Objective::kCost;
                o.plan.device.price_per_hour = 0;
              }));
}

}  // namespace
}  // namespace shardtool::api
