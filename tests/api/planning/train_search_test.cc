#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/api/catalogue/profiles.h"
#include "lib/api/planning/search/trained_replica.h"
#include "lib/api/planning/search/training_search.h"
#include "tests/api/planning/searched.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

const std::string& trained_model() {
  static const StoredModel model(mapping::tiny_llama({.layers = 4, .kv_heads = 4}));
  return model.path();
}

TrainSearchOptions train_options(const std::string& path) {
  TrainSearchOptions options;
  options.plan.sources = {path};
  options.plan.hardware = load_profile("h100-sxm");
  options.plan.device.bytes = options.plan.hardware->usable_bytes;
  options.devices = {1, 2, 4};
  options.sequence = 64;
  options.batch = 16;
  return options;
}

/// Bytes of the fullest device of the first stage by the command `plan --train`.
i64 planned_total(const TrainSearchOptions& options, const TrainingWay& way,
                  plan::Recompute recompute) {
  PlanOptions plan;
  plan.sources = options.plan.sources;
  plan.mapping.mesh = mesh::parse_mesh(fmt::format("pp={},tp={}", way.layout.pp, way.layout.tp));
  plan.training = TrainingPlan{static_cast<int>(way.zero_stage),
                               way.layout.dp,
                               options.state,
                               way.micro_batch,
                               options.sequence,
                               recompute};
  plan.workload.sequence_parallel = way.sequence_parallel;
  const MemoryReport memory = make_plan(plan).memory;
  i64 most = 0;
  for (i64 rank = 0; rank < way.layout.tp; ++rank)
    most = std::max(most, memory.devices[static_cast<size_t>(rank)].total);
  return most;
}

TEST_CASE("a way to train takes the memory that plan --train reports") {
  TrainSearchOptions options = train_options(trained_model());
  options.micro_batches = {1, 2};
  options.sequence_parallel = true;
  for (const plan::Recompute recompute : options.recomputes) {
    TrainSearchOptions one = options;
    one.recomputes = {recompute};
    const TrainSearchReport report = search_training(one);
    REQUIRE(report.rows.size() > 30);
    for (const TrainingRow& row : report.rows) {
      // plan counts for all stages as many micro-batches as the first one has under way.
      const TrainedStage& first = row.stages.front();
      REQUIRE(row.micro_batches >= row.way.layout.pp);
      CHECK_MESSAGE(first.total == planned_total(one, row.way, recompute), to_string(row.way));
      CHECK((first.gathered > 0) == (row.way.zero_stage == 3 && row.way.layout.dp > 1));
      CHECK(first.activations >= row.stages.back().activations);
    }
  }
}

/// Microseconds of the collectives of `plan --train`, of one kind or of all others.
double planned_us(const PlanReport& report, bool of_handing_over) {
  double us = 0;
  for (const model::CommRow& row : report.training_comm) {
    const bool hands_over = row.collective.op == plan::CollectiveOp::kPermute;
    if (hands_over == of_handing_over) us += static_cast<double>(row.count) * row.time.us;
  }
  return us;
}

TEST_CASE("plan --train has the collectives of activations that a way to train takes") {
  const TrainSearchOptions options = train_options(trained_model());
  SearchOptions serving;
  serving.plan = options.plan;
  const ServedModel model({trained_model()}, serving);
  for (const ServingLayout layout : {ServingLayout{1, 1, 1, 1}, ServingLayout{1, 1, 1, 2},
                                     ServingLayout{1, 2, 1, 2}, ServingLayout{1, 4, 1, 1}}) {
    for (const bool sequence_parallel : {false, true}) {
      CAPTURE(layout.pp);
      CAPTURE(layout.tp);
      const TrainingWay way{layout, 0, 2, sequence_parallel};
      double forward_us = 0;
      for (const plan::ForwardTimes& layer : TrainedReplica(model, layout).forward(options, way))
        forward_us += layer.collectives + layer.handoff;
      PlanOptions plan;
      plan.sources = options.plan.sources;
      plan.hardware = options.plan.hardware;
      plan.mapping.mesh = mesh::parse_mesh(fmt::format("pp={},tp={}", layout.pp, layout.tp));
      plan.workload.sequence_parallel = sequence_parallel;
      plan.training = TrainingPlan{};
      CHECK(make_plan(plan).training_comm.empty());  // of a step without sequences
      plan.training->sequence = options.sequence;
      plan.training->micro_batch = way.micro_batch;
      const PlanReport kept = make_plan(plan);
      const double handed_on = planned_us(kept, true);
      const double inside = planned_us(kept, false);
      CHECK((handed_on > 0) == (layout.pp > 1));
      CHECK((inside > 0) == (layout.tp > 1));
      CHECK(handed_on + inside == doctest::Approx(2 * forward_us));
      plan.training->recompute = plan::Recompute::kFull;
      CHECK(planned_us(make_plan(plan), true) == doctest::Approx(handed_on));
      CHECK(planned_us(make_plan(plan), false) == doctest::Approx(1.5 * inside));
    }
  }
}

TEST_CASE("training quantises values for products that the device runs in 8 bits") {
  const StoredModel in_blocks(searched::blocks());
  const auto quantising = [](const std::string& path, const char* profile) {
    TrainSearchOptions options = train_options(path);
    options.plan.hardware = load_profile(profile);
    SearchOptions serving;
    serving.plan = options.plan;
    const ServedModel model({path}, serving);
    const TrainedReplica replica(model, {});
    double us = 0;
    for (const plan::ForwardTimes& layer : replica.forward(options, {{}, 0, 1})) {
      us += layer.quantising + layer.gradient_quantising;
      CHECK((layer.quantising > 0) == (layer.gradient_quantising > 0));
    }
    return us;
  };
  CHECK(quantising(in_blocks.path(), "h100-sxm") > 0);
  // The same bytes, in the time of another memory.
  const auto us_of_byte = [](const char* profile) {
    const plan::HardwareProfile hardware = load_profile(profile);
    return 1 / (hardware.memory_gb_per_s * hardware.memory_efficiency);
  };
  CHECK(quantising(in_blocks.path(), "b200-sxm") / us_of_byte("b200-sxm") ==
        doctest::Approx(quantising(in_blocks.path(), "h100-sxm") / us_of_byte("h100-sxm")));
  CHECK(quantising(in_blocks.path(), "a100-80-sxm") == 0);  // has no 8-bit floats
  CHECK(quantising(trained_model(), "h100-sxm") == 0);
}

TEST_CASE("a loss reads the logits where they are: training gathers none") {
  PlanOptions plan;
  plan.sources = {trained_model()};
  plan.mapping.mesh = mesh::parse_mesh("tp=2");
  plan.training = TrainingPlan{};
  plan.training->sequence = 64;
  i64 reduced = 0;
  for (const model::CommRow& row : make_plan(plan).training_comm) {
    CHECK(row.collective.op == plan::CollectiveOp::kAllReduce);
    reduced += row.count;
  }
  CHECK(reduced == 2 * (2 * 4 + 1));  // of attention, MLP and the embedding
}

TEST_CASE("the last stage computes the head, and the first one waits for it") {
  const StoredModel model(mapping::tiny_llama({.layers = 2, .vocab = 1000}));
  TrainSearchOptions options = train_options(model.path());
  options.plan.hardware = searched::products_alone();
  options.devices = {2};
  options.pinned.pp = 2;
  options.batch = 4;
  options.recomputes = {plan::Recompute::kNone};
  const TrainSearchReport report = search_training(options);
  REQUIRE(report.rows.size() == 1);
  const TrainingRow& row = report.rows.front();
  // Weights of a layer: q and o of 64 x 64, k and v of 16 x 64, three of 96 x 64, two norms. Each
  // takes two operations for each of 64 tokens. A token meets 32.5 positions on average.
  constexpr double kLayer = 64 * 2 * (2 * 64 * 64 + 2 * 16 * 64 + 3 * 96 * 64 + 2 * 64);
  constexpr double kAttention = 64 * 32.5 * 2 * (64 + 64);
  constexpr double kHead = 64 * 2 * (1000 * 64 + 64);
  static_assert(kLayer + kAttention == 4'218'880 && kHead == 8'200'192);
  // Four micro-batches, and a pass is three times its forward pass: 4 * 3 * 4.21888 us, and
  // 4 * 3 * (4.21888 + 8.200192) us. The last stage waits for one forward pass of the first one,
  // which does one backward pass after the last one's: 3 * 4.21888 us more.
  REQUIRE(row.stages.size() == 2);
  CHECK(row.stages[0].parts.busy() == doctest::Approx(50.62656).epsilon(1e-6));
  CHECK(row.stages[1].parts.busy() == doctest::Approx(149.028864).epsilon(1e-6));
  CHECK(row.slowest == 1);
  CHECK(row.step_us == doctest::Approx(149.028864 + 12.65664).epsilon(1e-6));
  for (const TrainedStage& stage : row.stages)
    CHECK(stage.parts.total() == doctest::Approx(row.step_us));
  // The logits are kept on the same stage. A layer keeps 10 * 64 bytes of the stream, 2 * 448 of q,
  // k, v, the input of o, gate, up and the input of down, and 5 * 8 * 64 of scores.
  constexpr i64 kKept = 64 * (10 * 64 + 2 * 448 + 5 * 8 * 64);
  CHECK(row.stages[0].activations == 2 * kKept);
  CHECK(row.stages[1].activations == kKept + 64 * 4 * (64 + 1000));
}

TEST_CASE("the ends of a pipeline add up the gradients of tied weights") {
  const StoredModel tied(mapping::tiny_llama({.layers = 4, .kv_heads = 4}), "lm_head.weight");
  const auto comm = [](const std::string& path, const char* mesh) {
    PlanOptions plan;
    plan.sources = {path};
    plan.mapping.mesh = mesh::parse_mesh(mesh);
    plan.training = TrainingPlan{};
    return make_plan(plan).training_comm;
  };
  const auto rows = comm(tied.path(), "pp=4");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].axis == "pp");
  CHECK(rows[0].collective.op == plan::CollectiveOp::kAllReduce);
  CHECK(rows[0].collective.group.devices == 2);
  CHECK(rows[0].collective.payload_bytes == 2 * 100 * 64);
  CHECK(rows[0].count == 1);
  CHECK(comm(tied.path(), "tp=2").empty());
  CHECK(comm(trained_model(), "pp=4").empty());
  TrainSearchOptions options = train_options(tied.path());
  options.devices = {4};
  options.pinned.pp = 4;
  options.recomputes = {plan::Recompute::kNone};
  const auto found = search_training(options).rows;
  REQUIRE(found.size() == 1);
  const auto& stages = found.front().stages;
  REQUIRE(stages.size() == 4);
  CHECK(stages[0].parts.replicas > 0);
  CHECK(stages[1].parts.replicas == 0);
  CHECK(stages[2].parts.replicas == 0);
  CHECK(stages[3].parts.replicas == stages[0].parts.replicas);
}

TEST_CASE("ways with more pipeline stages than layers are refused with the reason") {
  TrainSearchOptions options = train_options(trained_model());
  options.devices = {8};
  const auto refused = search_training(options).refused;
  const auto found = std::ranges::find(refused, ServingLayout{1, 8, 1, 1},
                                       [](const RefusedTraining& one) { return one.way.layout; });
  REQUIRE(found != refused.end());
  CHECK(found->constraint == "cut");
  CHECK(found->reason == "the model has 4 layers, and every stage of pp=8 needs one");
}

/// Time of a step of one stage, by trying what every layer recomputes; infinity if nothing fits.
class EveryChoice {
 public:
  EveryChoice(const TrainSearchOptions& options, const TrainingWay& way)
      : options_(options), way_(way) {
    SearchOptions serving;
    serving.plan = options.plan;
    const ServedModel model({options.plan.sources.front()}, serving);
    replica_ = std::make_unique<TrainedReplica>(model, ServingLayout{});
    forward_ = replica_->forward(options, way);
    micro_batches_ = options.batch / way.micro_batch;
  }

  /// `passing` are the bytes of the head, or later of a layer that computes all again.
  double least(i64 room, size_t layer = 0, i64 passing = 0) const {
    if (room < passing) return std::numeric_limits<double>::infinity();
    if (layer == forward_.size()) return 0;
    double least_us = std::numeric_limits<double>::infinity();
    for (const plan::Recompute recompute : options_.recomputes) {
      const bool keeps = replica_->keeps_activations(layer);
      if (!keeps && recompute != plan::Recompute::kNone) continue;
      const auto kept = replica_->activations(options_, way_, recompute);
      const i64 bytes = keeps ? std::llround(kept[layer]) : 0;
      i64 beside = replica_->is_head(layer) ? std::llround(kept[layer]) : 0;
      if (recompute == plan::Recompute::kFull)
        beside = std::llround(replica_->recomputed(options_, way_)[layer]);
      const double us = plan::layer_step(forward_[layer], {}, recompute, 0, micro_batches_).total();
      least_us = std::min(least_us, us + least(room - bytes, layer + 1, std::max(passing, beside)));
    }
    return least_us;
  }

 private:
  const TrainSearchOptions& options_;
  TrainingWay way_;
  std::unique_ptr<TrainedReplica> replica_;
  std::vector<plan::ForwardTimes> forward_;
  i64 micro_batches_ = 1;
};

TEST_CASE("what the layers recompute is the best of all choices under the budget") {
  TrainSearchOptions options = train_options(trained_model());
  options.devices = {1};
  const TrainSearchReport free = search_training(options);
  REQUIRE(free.optimum);
  const TrainingRow& most = free.rows[*free.optimum];
  REQUIRE(most.stages.size() == 1);
  const TrainedStage& stage = most.stages.front();
  CHECK(stage.layers[0] == 4);
  CHECK(free.memory_costs == 0);
  const EveryChoice every(options, most.way);
  CHECK(rc::check("a budget", [&] {
    options.plan.device.bytes = *gen::between(stage.state, stage.total);
    const TrainSearchReport tight = search_training(options);
    const double least = every.least(options.plan.device.bytes - stage.state);
    RC_ASSERT(tight.optimum.has_value() == std::isfinite(least));
    if (!tight.optimum) {
      RC_ASSERT(tight.refused.front().constraint == "memory");
      return;
    }
    const TrainingRow& row = tight.rows[*tight.optimum];
    const double found = row.step_us - row.stages.front().parts.optimizer;
    RC_ASSERT(std::abs(found - least) <= 1e-9 * least);
    RC_ASSERT(row.stages.front().total <= options.plan.device.bytes);
    RC_ASSERT(std::abs(tight.memory_costs - (free.value / tight.value - 1)) <= 1e-9);
  }));
}

TEST_CASE("the optimum is the best row, below the bound, and every loss has its reason") {
  TrainSearchOptions options = train_options(trained_model());
  options.micro_batches = {1, 2, 4};
  const TrainSearchReport report = search_training(options);
  REQUIRE(report.optimum);
  REQUIRE(report.runner_up);
  for (const TrainingRow& row : report.rows) {
    CHECK(row.tokens_per_s_per_device() <= report.value);
    CHECK(row.step_us == doctest::Approx(row.stages[row.slowest].parts.total()));
    CHECK(row.tokens_per_s * row.step_us / 1e6 ==
          doctest::Approx(static_cast<double>(options.batch * options.sequence)));
  }
  CHECK(report.value <= report.bound);
  bool has_runner_up = false;
  for (const TrainingLoss& loss : report.losses) {
    CHECK(loss.by ==
          doctest::Approx(1 - report.rows[loss.row].tokens_per_s_per_device() / report.value));
    CHECK_FALSE(loss.reason.empty());
    has_runner_up |= loss.row == report.runner_up;
  }
  CHECK(has_runner_up);
}

TEST_CASE("the front has the optimum of a search under each smaller budget") {
  TrainSearchOptions options = train_options(trained_model());
  options.devices = {4};
  const TrainSearchReport whole = search_training(options);
  i64 most = 0;
  for (const TrainingRow& row : whole.rows) most = std::max(most, row.stages[row.fullest].total);
  options.plan.device.bytes = most;
  for (i64 part = 1; part < 10; ++part) options.smaller_budgets.push_back(most * part / 10);
  const TrainSearchReport report = search_training(options);
  REQUIRE(report.front.size() > 2);
  for (size_t i = 0; i < report.front.size(); ++i) {
    const TrainingRow& row = report.front[i];
    TrainSearchOptions tight = options;
    tight.smaller_budgets.clear();
    tight.plan.device.bytes = row.stages[row.fullest].total;
    CHECK(search_training(tight).value == row.tokens_per_s_per_device());
    if (i == 0) continue;
    const TrainingRow& before = report.front[i - 1];
    CHECK(row.tokens_per_s_per_device() > before.tokens_per_s_per_device());
    CHECK(row.stages[row.fullest].total > before.stages[before.fullest].total);
  }
  CHECK(report.front.back().tokens_per_s_per_device() == report.value);
}

TEST_CASE("a model that lacks a tensor of its graph is not trained") {
  const auto model = mapping::tiny_llama({.layers = 1, .kv_heads = 4});
  for (const TensorSpec& spec : model.tensors) {
    CAPTURE(spec.name);
    const StoredModel incomplete(model, spec.name);
    const auto error =
        testing::error_of([&] { search_training(train_options(incomplete.path())); });
    const bool is_unneeded = spec.name == "lm_head.weight" || spec.name.ends_with("inv_freq");
    CHECK(error.has_value() != is_unneeded);
  }
}

TEST_CASE("replicas that do not divide the batch, and layouts that cannot be, are refused") {
  TrainSearchOptions options = train_options(trained_model());
  options.devices = {3};
  for (const RefusedTraining& refused : search_training(options).refused) {
    const bool is_batch = refused.way.layout.dp == 3;
    CHECK(refused.constraint == (is_batch ? "batch" : "cut"));
  }
  const auto search = [](const auto& change) {
    TrainSearchOptions wrong = train_options(trained_model());
    change(wrong);
    return search_training(wrong);
  };
  CHECK_ERROR(kUsage, search([](TrainSearchOptions& o) { o.plan.hardware.reset(); }));
  CHECK_ERROR(kUsage, search([](TrainSearchOptions& o) { o.devices.clear(); }));
  CHECK_ERROR(kUsage, search([](TrainSearchOptions& o) { o.batch = 0; }));
  CHECK_ERROR(kUsage, search([](TrainSearchOptions& o) { o.sequence = 0; }));
  CHECK_ERROR(kUsage, search([](TrainSearchOptions& o) { o.plan.sources.push_back("x"); }));
}

}  // namespace
}  // namespace shardtool::api
