// Pipelines whose ranks have several runs of layers: Megatron's virtual stages.
#include "lib/api/planning/virtual_stages.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/api/planning/search/dealt_model.h"
#include "lib/api/planning/search/trained_replica.h"
#include "tests/api/planning/searched.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

constexpr i64 kLayers = 8;

const std::string& eight_layers() {
  static const StoredModel model(mapping::tiny_llama({.layers = kLayers, .kv_heads = 4}));
  return model.path();
}

/// A search of pipelines of two ranks on hardware on which nothing but GEMMs takes time.
TrainSearchOptions pipelines(std::vector<i64> virtual_stages) {
  TrainSearchOptions options;
  options.plan = searched::options_for(eight_layers()).plan;
  options.plan.hardware = searched::products_alone();
  options.devices = {2};
  options.pinned.pp = 2;
  options.sequence = 64;
  options.batch = 8;
  options.recomputes = {plan::Recompute::kNone};
  options.virtual_stages = std::move(virtual_stages);
  return options;
}

const TrainingRow& row_with(const TrainSearchReport& report, i64 virtual_stages) {
  const auto found = std::ranges::find(
      report.rows, virtual_stages, [](const TrainingRow& row) { return row.way.virtual_stages; });
  REQUIRE(found != report.rows.end());
  return *found;
}

/// Time of a step of 8 micro-batches on two ranks by the times of single layers: run k of the
/// layers is a stage. The first run has the embedding, too, and the last one the head.
double expected_step_us(const std::vector<plan::ForwardTimes>& forward, i64 virtual_stages) {
  const i64 runs = 2 * virtual_stages;
  std::vector<plan::PipelineStage> stages(static_cast<size_t>(runs));
  for (size_t i = 0; i < forward.size(); ++i) {
    const i64 layer = std::clamp<i64>(static_cast<i64>(i) - 1, 0, kLayers - 1);
    stages[static_cast<size_t>(layer * runs / kLayers)] +=
        plan::layer_passes(forward[i], {}, plan::Recompute::kNone, 0);
  }
  return plan::pipeline_us(stages, 8, virtual_stages);
}

TEST_CASE("a step with virtual stages takes as long as the interleaved runs of layers") {
  const TrainSearchOptions options = pipelines({1, 2, 4});
  const TrainSearchReport report = search_training(options);
  REQUIRE(report.rows.size() == 3);
  const DealtModel whole(options, 1);
  const auto forward = TrainedReplica(whole.served(), {}).forward(options, {ServingLayout{}, 0, 1});
  REQUIRE(std::ssize(forward) == kLayers + 2);
  for (const i64 virtual_stages : options.virtual_stages) {
    const TrainingRow& row = row_with(report, virtual_stages);
    CHECK(row.step_us == doctest::Approx(expected_step_us(forward, virtual_stages)).epsilon(1e-6));
    CHECK(row.stages.size() == 2);
  }
  CHECK(row_with(report, 2).step_us < row_with(report, 1).step_us);
  CHECK(row_with(report, 4).step_us < row_with(report, 2).step_us);
  CHECK(to_string(row_with(report, 4).way) == "pp=2 tp=1 virtual-stages=4");
}

TEST_CASE(
    "rank r of p has the runs r, p + r and so on, and the ends of the model are on the ends") {
  const TrainSearchOptions options = pipelines({2});
  const DealtModel dealt(options, 2);
  const TrainedReplica replica(dealt.served(), ServingLayout{1, 2, 1, 1}, 2);
  // The embedding is number 0, and the head 9.
  CHECK(replica.layers(0) == std::vector<size_t>{0, 1, 2, 5, 6});
  CHECK(replica.layers(1) == std::vector<size_t>{3, 4, 7, 8, 9});
  std::vector<size_t> virtual_stages;
  for (size_t layer = 0; layer < 10; ++layer)
    virtual_stages.push_back(replica.virtual_stage(layer));
  CHECK(virtual_stages == std::vector<size_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
}

PlanOptions train_plan(const char* mesh, i64 virtual_stages) {
  PlanOptions plan;
  plan.sources = {eight_layers()};
  plan.mapping.mesh = mesh::parse_mesh(mesh);
  plan.training = TrainingPlan{};
  plan.training->sequence = 64;
  plan.training->virtual_stages = virtual_stages;
  deal_layers(plan.mapping, virtual_stages);
  return plan;
}

TEST_CASE("equal layers keep (p - 1) / (p v) more activations on the first rank") {
  for (const i64 pp : {2, 4}) {
    const std::string mesh = fmt::format("pp={}", pp);
    const i64 plain = make_plan(train_plan(mesh.c_str(), 1)).memory.devices[0].activations;
    for (const i64 v : {i64{2}, 8 / pp}) {
      CAPTURE(pp);
      CAPTURE(v);
      const PlanReport report = make_plan(train_plan(mesh.c_str(), v));
      CHECK(report.memory.devices[0].activations * pp * v == plain * (pp * v + pp - 1));
      // The same number of layers as before.
      CHECK(report.memory.devices[0].training ==
            make_plan(train_plan(mesh.c_str(), 1)).memory.devices[0].training);
    }
  }
}

TEST_CASE("plan --train and a search count the same memory of the first rank") {
  TrainSearchOptions options = pipelines({2, 4});
  options.batch = 16;
  options.devices = {2, 4};
  const TrainSearchReport report = search_training(options);
  REQUIRE(report.rows.size() > 4);
  for (const TrainingRow& row : report.rows) {
    REQUIRE(row.micro_batches >= 3 * row.way.layout.pp);
    PlanOptions plan =
        train_plan(fmt::format("pp=2,tp={}", row.way.layout.tp).c_str(), row.way.virtual_stages);
    plan.training->zero_stage = static_cast<int>(row.way.zero_stage);
    plan.training->data_parallel = row.way.layout.dp;
    CHECK_MESSAGE(row.stages.front().total == make_plan(plan).memory.devices[0].total,
                  to_string(row.way));
  }
}

TEST_CASE("stages hand over v times as often, and once less") {
  const auto handed_over = [](i64 virtual_stages) {
    i64 count = 0;
    for (const model::CommRow& row : make_plan(train_plan("pp=2", virtual_stages)).training_comm) {
      CHECK(row.collective.op == plan::CollectiveOp::kPermute);
      count += row.count;
    }
    return count;
  };
  CHECK(handed_over(1) == 2 * 1);
  CHECK(handed_over(2) == 2 * 3);
  CHECK(handed_over(4) == 2 * 7);
}

TEST_CASE("no device of a pipeline with virtual stages has more than its budget") {
  TrainSearchOptions options = pipelines({2, 4});
  options.recomputes = {plan::Recompute::kNone, plan::Recompute::kSelective,
                        plan::Recompute::kFull};
  const i64 most = row_with(search_training(options), 4).stages.front().total;
  i64 recomputed = 0;
  for (i64 budget = most; budget > most / 2; budget -= most / 40) {
    options.plan.device.bytes = budget;
    for (const TrainingRow& row : search_training(options).rows) {
      for (const TrainedStage& stage : row.stages) {
        CHECK(stage.total <= budget);
        recomputed += stage.layers[1] + stage.layers[2];
      }
    }
  }
  CHECK(recomputed > 0);
}

TEST_CASE("ways that virtual stages do not allow are refused with the reason") {
  TrainSearchOptions options = pipelines({2, 8});
  options.batch = 5;
  const TrainSearchReport report = search_training(options);
  CHECK(report.rows.empty());
  REQUIRE(report.refused.size() == 2);
  CHECK(report.refused[0].constraint == "batch");
  CHECK(report.refused[0].reason ==
        "5 micro-batches of a replica are no multiple of pp=2, which virtual stages need");
  CHECK(report.refused[1].constraint == "cut");
  CHECK(report.refused[1].way.virtual_stages == 8);
  // Replicas without a pipeline are the same with any number.
  options.pinned.pp = 1;
  for (const TrainingRow& row : search_training(options).rows) CHECK(row.way.virtual_stages == 1);
  options.virtual_stages = {0};
  CHECK_ERROR(kUsage, search_training(options));
}

TEST_CASE("a plan refuses virtual stages of layers that are on their ranks in another way") {
  CHECK_ERROR(kMesh, make_plan(train_plan("tp=2", 2)));
  CHECK_ERROR(kNotDivisible, make_plan(train_plan("pp=4", 4)));
  PlanOptions plan = train_plan("pp=2", 1);
  plan.training->virtual_stages = 2;  // and the layers in two runs
  CHECK_ERROR(kMesh, make_plan(plan));
  plan = train_plan("pp=2", 4);
  plan.training->virtual_stages = 2;
  CHECK_ERROR(kMesh, make_plan(plan));
}

}  // namespace
}  // namespace shardtool::api
