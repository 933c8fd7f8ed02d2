#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "lib/api/catalogue/profiles.h"
#include "lib/api/planning/search/trained_replica.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/plan/collective/collective_time.h"
#include "lib/plan/pipeline.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

constexpr i64 kSequence = 64;

TrainSearchOptions small_options(const std::string& path) {
  TrainSearchOptions options;
  options.plan.sources = {path};
  options.plan.hardware = load_profile("h100-sxm");
  options.plan.device.bytes = options.plan.hardware->usable_bytes;
  options.sequence = kSequence;
  options.batch = 16;
  return options;
}

/// The mesh of a layout's replica, and experts as it distributes them.
MappingChoice mapping_of(const ServingLayout& layout) {
  MappingChoice mapping;
  mapping.mesh =
      mesh::parse_mesh(fmt::format("pp={},ep={},tp={}", layout.pp, layout.ep, layout.tp));
  if (layout.expert_parallel) {
    mapping.settings = {{"axes.experts.mesh", R"(["ep", "tp"])"}, {"axes.experts.alone", "true"}};
  }
  return mapping;
}

/// Parameters of a layer on each device, by hand: of experts, and all others.
struct LayerParameters {
  i64 experts = 0;
  i64 others = 0;
};

/// Every way to train a small model, each tried by itself. Memory is that of `plan --train`.
class EveryWay {
 public:
  EveryWay(const mapping::TinyModel& model, i64 layers, i64 experts)
      : stored_(model), tensors_(model.tensors), layers_(layers), experts_(experts) {
    served_.plan = small_options(stored_.path()).plan;
    model_.emplace(SearchedModel{stored_.path()}, served_);
  }

  const std::string& path() const { return stored_.path(); }

  /// Most tokens per second and device; 0 if nothing fits.
  double best(const TrainSearchOptions& options) {
    double best = 0;
    for (const i64 n : options.devices) {
      for (const auto& layout : layouts_on(n)) {
        if (options.pinned.ep && layout.ep != *options.pinned.ep) continue;
        for (const i64 zero : options.zero_stages) {
          for (const i64 micro_batch : options.micro_batches)
            best = std::max(best, tokens(options, {layout, zero, micro_batch}));
        }
      }
    }
    return best;
  }

 private:
  std::vector<ServingLayout> layouts_on(i64 n) const {
    std::vector<ServingLayout> all;
    for (i64 dp = 1; dp <= n; ++dp) {
      for (i64 pp = 1; dp * pp <= n; ++pp) {
        for (i64 ep = 1; dp * pp * ep <= n; ++ep) {
          if (n % (dp * pp * ep) != 0 || (ep > 1 && experts_ == 0)) continue;
          all.push_back({dp, pp, ep, n / (dp * pp * ep), false});
          if (experts_ == 0) continue;
          all.push_back(all.back());
          all.back().expert_parallel = true;
        }
      }
    }
    return all;
  }

  PlanOptions plan_of(const ServingLayout& layout) const {
    PlanOptions plan;
    plan.sources = {path()};
    plan.hardware = served_.plan.hardware;
    plan.mapping = mapping_of(layout);
    return plan;
  }

  /// Returns the replica; null for a layout that `plan` refuses.
  const TrainedReplica* replica(const ServingLayout& layout) {
    const auto [found, is_new] =
        replicas_.try_emplace({layout.pp, layout.ep, layout.tp, layout.expert_parallel});
    if (is_new && !testing::error_of([&] { return make_plan(plan_of(layout)); }))
      found->second = std::make_unique<TrainedReplica>(
          *model_, ServingLayout{1, layout.pp, layout.ep, layout.tp, layout.expert_parallel});
    return found->second.get();
  }

  /// Returns the bytes of a device of each stage without activations.
  const std::vector<i64>& state(const TrainingWay& way) {
    const ServingLayout& layout = way.layout;
    const auto [found, is_new] = states_.try_emplace(
        {layout.dp, layout.pp, layout.ep, layout.tp, layout.expert_parallel, way.zero_stage});
    if (!is_new) return found->second;
    PlanOptions plan = plan_of(layout);
    plan.training = TrainingPlan{static_cast<int>(way.zero_stage), layout.dp};
    const MemoryReport memory = make_plan(plan).memory;
    for (i64 stage = 0; stage < layout.pp; ++stage) {
      const auto first = static_cast<size_t>(stage * layout.ep * layout.tp);
      found->second.push_back(memory.devices[first].total);
    }
    return found->second;
  }

  /// Tokens per second and device of a way; 0 if it is not possible.
  double tokens(const TrainSearchOptions& options, const TrainingWay& way) {
    const ServingLayout& layout = way.layout;
    const TrainedReplica* placed = replica(layout);
    const i64 together = layout.dp * layout.ep * way.micro_batch;
    if (placed == nullptr || options.batch % together != 0) return 0;
    const i64 micro_batches = options.batch / together;
    const auto forward = placed->forward(options, way);
    std::vector<plan::PipelineStage> stages;
    for (i64 stage = 0; stage < layout.pp; ++stage) {
      const i64 under_way = std::min(micro_batches, layout.pp - stage);
      std::vector<std::vector<Choice>> ways;
      for (const size_t layer : placed->layers(stage)) {
        const plan::ReplicaTimes replicas = replica_times(options, layout, layer);
        ways.emplace_back();
        for (const plan::Recompute recompute : options.recomputes) {
          const bool keeps = placed->keeps_activations(layer);
          if (!keeps && recompute != plan::Recompute::kNone) continue;
          const double bytes = placed->activations(options, way, recompute)[layer];
          i64 passing = 0;
          if (recompute == plan::Recompute::kFull)
            passing = std::llround(placed->recomputed(options, way)[layer]);
          const auto zero = static_cast<int>(way.zero_stage);
          ways.back().push_back({plan::layer_passes(forward[layer], replicas, recompute, zero),
                                 keeps ? std::llround(bytes * static_cast<double>(under_way)) : 0,
                                 passing});
        }
      }
      const i64 room = options.plan.device.bytes - state(way)[static_cast<size_t>(stage)];
      const i64 head = stage + 1 == layout.pp ? head_bytes(options, way, *placed) : 0;
      const auto passes = static_cast<double>(micro_batches + layout.pp - 1);
      const auto best = least({passes, ways}, room, 0, head);
      if (!best) return 0;
      stages.push_back(*best);
      stages.back().after += optimizer_us(options, way, placed->layers(stage));
    }
    const double us = plan::pipeline_us(stages, micro_batches);
    return static_cast<double>(options.batch * kSequence) / us * 1e6 /
           static_cast<double>(layout.devices());
  }

  /// Bytes of the head, whose index is that of the last layer.
  i64 head_bytes(const TrainSearchOptions& options, const TrainingWay& way,
                 const TrainedReplica& placed) const {
    const auto head = static_cast<size_t>(layers_ + 1);
    CHECK(placed.is_head(head));
    return std::llround(placed.activations(options, way, plan::Recompute::kNone)[head]);
  }

  /// A way to run a layer, its bytes, and those of one micro-batch at a time.
  struct Choice {
    plan::PipelineStage passes;
    i64 bytes = 0;
    i64 passing = 0;
  };

  /// The ways of a stage's layers, and the passes of a stage in a pipeline of equal ones.
  struct Choices {
    double passes = 0;
    const std::vector<std::vector<Choice>>& ways;

    double us(const plan::PipelineStage& of) const {
      return passes * (of.ahead + of.back) + of.after;
    }
  };

  /// The passes of the layers from `next` on that take least time, by trying all combinations of
  /// their ways; nullopt if none fits. `passing` are the most bytes that an earlier layer has for a
  /// while.
  static std::optional<plan::PipelineStage> least(const Choices& of, i64 room, size_t next,
                                                  i64 passing) {
    if (room < passing) return std::nullopt;
    if (next == of.ways.size()) return plan::PipelineStage{};
    std::optional<plan::PipelineStage> best;
    for (const Choice& one : of.ways[next]) {
      auto with = least(of, room - one.bytes, next + 1, std::max(passing, one.passing));
      if (!with) continue;
      with->ahead += one.passes.ahead;
      with->back += one.passes.back;
      with->handoff += one.passes.handoff;
      with->after += one.passes.after;
      if (!best || of.us(*with) < of.us(*best)) best = with;
    }
    return best;
  }

  /// Parameters of a device in the layer with this index: embedding, layers, head.
  LayerParameters parameters(const ServingLayout& layout, size_t index) const {
    const std::string of_layer = fmt::format("model.layers.{}.", static_cast<i64>(index) - 1);
    const bool is_first = index == 0;
    const bool is_last = static_cast<i64>(index) == layers_ + 1;
    LayerParameters sum;
    for (const TensorSpec& tensor : tensors_) {
      const std::string& name = tensor.name;
      const bool is_mine = is_first  ? name.find("embed") != std::string::npos
                           : is_last ? name.starts_with("lm_head") || name == "model.norm.weight"
                                     : name.starts_with(of_layer);
      if (!is_mine) continue;
      const bool is_whole = name.find("norm") != std::string::npos ||
                            name.find("block_sparse_moe.gate") != std::string::npos;
      const i64 elements = *element_count(tensor.shape);
      if (name.find("experts.") != std::string::npos) {
        sum.experts += elements;
      } else {
        sum.others += is_whole ? elements : elements / layout.tp;
      }
    }
    if (sum.experts == 0) return sum;
    const i64 each = sum.experts / experts_;
    sum.experts = layout.expert_parallel ? ceil_div(experts_, layout.ep * layout.tp) * each
                                         : ceil_div(experts_, layout.ep) * each / layout.tp;
    return sum;
  }

  /// Time to update what a device of a stage trains: the layers that it runs.
  double optimizer_us(const TrainSearchOptions& options, const TrainingWay& way,
                      const std::vector<size_t>& layers) const {
    double updated = 0;
    for (const size_t layer : layers) {
      const LayerParameters of = parameters(way.layout, layer);
      const bool is_shared = way.zero_stage > 0;
      updated +=
          static_cast<double>(of.experts) / static_cast<double>(is_shared ? way.layout.dp : 1);
      updated += static_cast<double>(of.others) /
                 static_cast<double>(is_shared ? way.layout.dp * way.layout.ep : 1);
    }
    const plan::HardwareProfile& hardware = *options.plan.hardware;
    return updated * 32 / (hardware.memory_gb_per_s * 1e3 * hardware.memory_efficiency);
  }

  plan::ReplicaTimes replica_times(const TrainSearchOptions& options, const ServingLayout& layout,
                                   size_t layer) const {
    const plan::HardwareProfile& hardware = *options.plan.hardware;
    const LayerParameters of = parameters(layout, layer);
    const mesh::Mesh mesh(
        {{"dp", layout.dp}, {"pp", layout.pp}, {"ep", layout.ep}, {"tp", layout.tp}});
    const auto us = [&](plan::CollectiveOp op) {
      const auto along = [&](const mesh::Over& over, i64 elements) {
        const plan::Group group = plan::group_along(mesh, over, hardware.domain());
        return elements == 0 ? 0 : plan::time_of({op, group, 2 * elements}, hardware).us;
      };
      return along({{"dp"}}, of.experts) + along({{"dp"}, {"ep"}}, of.others);
    };
    return {us(plan::CollectiveOp::kAllReduce), us(plan::CollectiveOp::kAllGather),
            us(plan::CollectiveOp::kReduceScatter)};
  }

  StoredModel stored_;
  std::vector<TensorSpec> tensors_;
  i64 layers_;
  i64 experts_;
  SearchOptions served_;
  std::optional<ServedModel> model_;
  std::map<std::tuple<i64, i64, i64, bool>, std::unique_ptr<TrainedReplica>> replicas_;
  std::map<std::tuple<i64, i64, i64, i64, bool, i64>, std::vector<i64>> states_;
};

/// Returns a model with so many layers and experts; without experts it is dense.
EveryWay& small_model(i64 layers, i64 experts) {
  static std::map<std::pair<i64, i64>, std::unique_ptr<EveryWay>> models;
  auto& found = models[{layers, experts}];
  if (!found) {
    const mapping::LlamaSizes sizes{.layers = layers,
                                    .hidden = 96,
                                    .heads = 24,
                                    .kv_heads = 24,
                                    .head_dim = 4,
                                    .mlp = 96,
                                    .vocab = 96};
    mapping::TinyModel model =
        experts > 0 ? mapping::tiny_mixtral(sizes, experts) : mapping::tiny_llama(sizes);
    // No op reads these, so that they are in no layer.
    std::erase_if(model.tensors,
                  [](const TensorSpec& tensor) { return tensor.name.ends_with("inv_freq"); });
    found = std::make_unique<EveryWay>(model, layers, experts);
  }
  return *found;
}

TEST_CASE("the best way to train is the best of all ways, with experts over ep and without") {
  i64 fitting = 0;
  i64 over_ep = 0;
  CHECK(rc::check("a model, devices and a budget", [&] {
    const bool has_experts = *gen::between(0, 3) > 0;
    EveryWay& every = small_model(*gen::between(2, 3), has_experts ? 4 : 0);
    TrainSearchOptions options = small_options(every.path());
    options.devices = {*rc::gen::element<i64>(2, 3, 4, 8)};
    options.batch = *rc::gen::element<i64>(12, 16);
    if (*gen::between(0, 1) == 1) options.micro_batches = {1, 2};
    const bool may_pin = has_experts && options.devices.front() % 2 == 0;
    if (may_pin && *gen::between(0, 1) == 1) options.pinned.ep = 2;
    options.zero_stages = {*gen::between(0, 3)};
    if (*gen::between(0, 1) == 1) options.zero_stages = {0, 1, 2, 3};
    if (*gen::between(0, 1) == 1)
      options.recomputes = {plan::Recompute::kNone, plan::Recompute::kFull};
    if (*gen::between(0, 3) > 0)
      options.plan.device.bytes = *gen::between(i64{1} << 18, i64{1} << 23);
    const TrainSearchReport report = search_training(options);
    const double best = every.best(options);
    if (report.optimum)
      RC_LOG() << to_string(report.rows[*report.optimum].way) << " has " << report.value
               << ", and the best has " << best << '\n';
    RC_ASSERT(report.optimum.has_value() == (best > 0));
    if (!report.optimum) return;
    ++fitting;
    over_ep += report.rows[*report.optimum].way.layout.ep > 1 ? 1 : 0;
    RC_ASSERT(std::abs(report.value - best) <= 1e-9 * best);
    RC_ASSERT(report.value <= report.bound);
  }));
  CHECK(fitting > 20);
  CHECK(over_ep > 0);
}

TEST_CASE("a way with experts over ep takes the memory that plan --train reports") {
  TrainSearchOptions options = small_options(small_model(2, 4).path());
  options.devices = {8};
  options.recomputes = {plan::Recompute::kNone};
  i64 tried = 0;
  for (const TrainingRow& row : search_training(options).rows) {
    const ServingLayout& layout = row.way.layout;
    if (layout.ep == 1) continue;
    PlanOptions plan;
    plan.sources = options.plan.sources;
    plan.mapping = mapping_of(layout);
    plan.training = TrainingPlan{static_cast<int>(row.way.zero_stage), layout.dp};
    plan.training->sequence = kSequence;
    CHECK_MESSAGE(row.stages.front().total == make_plan(plan).memory.devices.front().total,
                  to_string(row.way));
    ++tried;
  }
  CHECK(tried > 8);
}

TEST_CASE("ZeRO partitions experts over replicas, and other weights over ep, too") {
  const std::string& path = small_model(2, 4).path();
  const auto state = [&](int zero, i64 dp) {
    PlanOptions plan;
    plan.sources = {path};
    plan.mapping.mesh = mesh::parse_mesh("ep=4,tp=1");
    plan.training = TrainingPlan{zero, dp};
    return make_plan(plan).memory.devices.front().training;
  };
  // A device has one of 4 experts, which no other device of the mesh has.
  const i64 experts = 2 * 3 * 96 * 96;
  const i64 others = state(0, 1) / 16 - experts;
  REQUIRE(others % 8 == 0);
  CHECK(state(1, 1) == 4 * (experts + others) + 12 * (experts + others / 4));
  CHECK(state(3, 1) == 16 * (experts + others / 4));
  CHECK(state(3, 2) == 16 * (experts / 2 + others / 8));
}

TEST_CASE("a plan of training has the gradients that replicas and groups reduce") {
  PlanOptions plan;
  plan.sources = {small_model(2, 4).path()};
  plan.mapping.mesh = mesh::parse_mesh("ep=4,tp=1");
  plan.training = TrainingPlan{0, 2};
  plan.device.price_per_hour = 3;
  const PlanReport report = make_plan(plan);
  REQUIRE(report.replicas);
  CHECK(report.replicas->number == 2);
  CHECK(report.replicas->devices == 8);
  CHECK(report.price_per_hour == 24);
  std::map<std::string, i64> bytes;
  for (const model::CommRow& row : report.training_comm) {
    CHECK(row.collective.op == plan::CollectiveOp::kAllReduce);
    CHECK(row.collective.group.devices == (row.axis == "dp" ? 2 : 8));
    bytes[row.axis] += row.count * row.collective.payload_bytes;
  }
  const i64 experts = 2 * 3 * 96 * 96;
  const i64 others = report.memory.devices.front().training / 16 - experts;
  CHECK(bytes == std::map<std::string, i64>{{"dp", 2 * experts}, {"dp*ep", 2 * others}});
  plan.training->zero_stage = 3;
  std::map<plan::CollectiveOp, i64> calls;
  for (const model::CommRow& row : make_plan(plan).training_comm)
    calls[row.collective.op] += row.count;
  CHECK(calls[plan::CollectiveOp::kAllGather] == 2 * calls[plan::CollectiveOp::kReduceScatter]);
  CHECK(calls.size() == 2);
  plan.training->data_parallel = 1;
  plan.mapping.mesh = mesh::parse_mesh("tp=4");
  CHECK(make_plan(plan).training_comm.empty());
}

TEST_CASE("a micro-batch of every group sends its tokens to the experts that plan prices") {
  const TrainSearchOptions options = small_options(small_model(2, 4).path());
  SearchOptions serving;
  serving.plan = options.plan;
  const ServedModel model({options.plan.sources.front()}, serving);
  const TrainingWay way{{.ep = 4}, 0, 2};
  const TrainedReplica replica(model, way.layout);
  CHECK(replica.token_groups() == 4);
  double collectives = 0;
  for (const plan::ForwardTimes& layer : replica.forward(options, way))
    collectives += layer.collectives;
  PlanOptions plan = options.plan;
  plan.mapping.mesh = mesh::parse_mesh("ep=4,tp=1");
  plan.workload.batch = 4 * way.micro_batch;
  plan.workload.prompt_len = kSequence;
  plan.workload.context = kSequence;
  const model::Price price = *make_plan(plan).cost->price;
  CHECK(price.prefill.roofline->comm_us > 0);
  CHECK(collectives == doctest::Approx(price.prefill.roofline->comm_us));
}

TEST_CASE("experts that ep cannot be cut over are refused with the words of split") {
  TrainSearchOptions options = small_options(small_model(1, 2).path());
  options.devices = {3};
  options.batch = 9;
  for (const RefusedTraining& refused : search_training(options).refused) {
    CHECK(refused.constraint == "cut");
    CHECK(refused.way.layout.ep == 1);
  }
  options.devices = {2};
  options.batch = 3;
  bool has_groups = false;
  for (const RefusedTraining& refused : search_training(options).refused) {
    if (refused.way.layout.ep == 1) continue;
    CHECK(refused.constraint == "batch");
    CHECK(refused.reason == "3 sequences of a step are no multiple of 1 replica x 2 groups x 1");
    has_groups = true;
  }
  CHECK(has_groups);
}

}  // namespace
}  // namespace shardtool::api
