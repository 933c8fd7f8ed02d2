#include "lib/api/planning/search/replica_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "lib/base/text.h"
#include "lib/plan/byte_count.h"
#include "lib/plan/collective/collective_time.h"
#include "lib/plan/layer_ways.h"
#include "lib/plan/training.h"

namespace shardtool::api {
namespace {

/// Returns the time of a step. What the last stage hands over, which is an encoder's output for a
/// decoder that begins on the first stage, lengthens its passes.
double pipeline_step_us(std::vector<plan::PipelineStage> stages, i64 micro_batches,
                        i64 virtual_stages) {
  plan::PipelineStage& last = stages.back();
  last.ahead += last.handoff;
  last.back += last.handoff;
  return plan::pipeline_us(stages, micro_batches, virtual_stages);
}

/// Needs of a way that a budget does not change.
struct Needs {
  std::vector<plan::PipelineStage> stages;  ///< in endless memory; virtual ones, too
  std::string refusal;                      ///< of the first stage that does not fit; empty: all do
};

/// A rank's choice: what its layers recompute, and the passes of its virtual stages.
struct ChosenStage {
  TrainedStage stage;
  std::vector<plan::PipelineStage> passes;
};

/// Ways to train with one replica layout.
class ReplicaTraining {
 public:
  ReplicaTraining(const TrainSearchOptions& options, const TrainedReplica& replica,
                  FoundTraining& found)
      : options_(options), replica_(replica), found_(found) {}

  void run(const std::vector<ServingLayout>& layouts) {
    set_gathered(layouts);
    for (const i64 micro_batch : options_.micro_batches) {
      for (const bool is_cut : {false, true}) {
        if (is_cut && (!options_.sequence_parallel || layouts.front().tp == 1)) continue;
        const TrainingWay way{layouts.front(), 0, micro_batch, is_cut, replica_.virtual_stages()};
        forward_ = replica_.forward(options_, way);
        activations_.clear();
        for (const plan::Recompute recompute : options_.recomputes)
          activations_[recompute] = replica_.activations(options_, way, recompute);
        again_.clear();
        for (const double bytes : replica_.recomputed(options_, way))
          again_.push_back(std::llround(bytes));
        for (const ServingLayout& layout : layouts)
          add_zero_stages({layout, 0, micro_batch, is_cut, replica_.virtual_stages()});
      }
    }
  }

 private:
  void set_gathered(const std::vector<ServingLayout>& layouts) {
    if (std::ranges::find(options_.zero_stages, 3) == options_.zero_stages.end()) return;
    std::vector<i64> replicas;
    for (const ServingLayout& layout : layouts) {
      if (has_replicas(layout)) replicas.push_back(layout.dp);
    }
    const auto bytes = replica_.gathered(replicas);
    for (size_t i = 0; i < replicas.size(); ++i) gathered_[replicas[i]] = bytes[i];
  }

  /// True if several devices have the same weights for different sequences.
  bool has_replicas(const ServingLayout& layout) const {
    return layout.dp * replica_.token_groups() > 1;
  }

  void refuse(const TrainingWay& way, const char* constraint, const std::string& reason) {
    found_.report.refused.push_back({way, constraint, reason});
  }

  void add_zero_stages(TrainingWay way) {
    const i64 groups = replica_.token_groups();
    const i64 each = way.layout.dp * groups * way.micro_batch;
    if (options_.batch % each != 0) {
      const std::string of_groups = groups > 1 ? fmt::format(" x {} groups", groups) : "";
      return refuse(
          way, "batch",
          fmt::format("{} sequences of a step are no multiple of {}{} x {}", options_.batch,
                      plural(way.layout.dp, "replica"), of_groups, way.micro_batch));
    }
    const i64 micro_batches = options_.batch / each;
    if (way.virtual_stages > 1 && micro_batches % replica_.stages() != 0) {
      return refuse(
          way, "batch",
          fmt::format("{} micro-batches of a replica are no multiple of pp={}, which virtual "
                      "stages need",
                      micro_batches, replica_.stages()));
    }
    set_replica_times(way.layout);
    for (const i64 zero : options_.zero_stages) {
      const bool is_first = zero == options_.zero_stages.front();
      if (!is_first && !has_replicas(way.layout)) continue;  // the same as another stage
      way.zero_stage = zero;
      add_row(way, micro_batches);
    }
  }

  /// Times the collectives of every layer among the devices that have the same weights: those of
  /// all replicas, for other weights than dealt experts also those of their groups, and for shared
  /// weights those of other stages.
  void set_replica_times(const ServingLayout& layout) {
    const mesh::Mesh mesh(
        {{"dp", layout.dp}, {"pp", layout.pp}, {"ep", layout.ep}, {"tp", layout.tp}});
    const i64 domain = options_.plan.hardware->domain();
    const plan::Group of_experts = plan::group_along(mesh, {{"dp"}}, domain);
    const plan::Group of_others = plan::group_along(mesh, {{"dp"}, {"ep"}}, domain);
    std::map<TrainedParameters, plan::ReplicaTimes> known;
    replicas_.clear();
    for (size_t layer = 0; layer < forward_.size(); ++layer) {
      const auto [found, is_new] = known.try_emplace(replica_.parameters(layer));
      if (is_new) {
        for (const auto& [in_mesh, elements] : found->first)
          add_replica_times(in_mesh > 1 ? of_others : of_experts, elements, found->second);
      }
      replicas_.push_back(found->second);
    }
    for (const SharedWeights& weights : replica_.parameters().shared) {
      const auto sum = gradient_sum(weights, mesh, domain, options_.state.gradient);
      const double us = plan::time_of(sum, *options_.plan.hardware).us;
      for (const size_t layer : weights.layers) replicas_[layer].shared += us;
    }
  }

  void add_replica_times(const plan::Group& group, i64 elements, plan::ReplicaTimes& times) const {
    const auto us = [&](plan::CollectiveOp op, i64 bytes) {
      return plan::time_of({op, group, plan::times(elements, bytes)}, *options_.plan.hardware).us;
    };
    const plan::TrainingState& state = options_.state;
    times.all_reduce += us(plan::CollectiveOp::kAllReduce, state.gradient);
    times.all_gather += us(plan::CollectiveOp::kAllGather, state.weight);
    times.reduce_scatter += us(plan::CollectiveOp::kReduceScatter, state.gradient);
  }

  void add_row(const TrainingWay& way, i64 micro_batches) {
    Needs needs;
    auto row = row_under(budget(), way, micro_batches, needs);
    const double least_us = pipeline_step_us(needs.stages, micro_batches, way.virtual_stages);
    found_.unlimited = std::max(found_.unlimited, tokens_per_step() / least_us * kStepUsPerSecond /
                                                      static_cast<double>(way.layout.devices()));
    if (!row) return refuse(way, "memory", needs.refusal);
    found_.report.rows.push_back(std::move(*row));
    for (size_t b = 0; b < options_.smaller_budgets.size(); ++b)
      found_.keep_better(b, row_under(options_.smaller_budgets[b], way, micro_batches, needs));
  }

  /// Returns the fastest row whose devices have so many bytes; nullopt if a stage does not fit.
  std::optional<TrainingRow> row_under(i64 budget, const TrainingWay& way, i64 micro_batches,
                                       Needs& needs) const {
    TrainingRow row;
    row.way = way;
    row.micro_batches = micro_batches;
    const auto n_stages = static_cast<size_t>(replica_.stages() * way.virtual_stages);
    needs.stages.assign(n_stages, {});
    std::vector<plan::PipelineStage> stages(n_stages);
    for (i64 stage = 0; stage < replica_.stages(); ++stage) {
      const auto of = stage_of(row, stage, budget, needs);
      if (!of) continue;
      row.stages.push_back(of->stage);
      put_on(stage, of->passes, stages);
      if (of->stage.total > row.stages[row.fullest].total) row.fullest = row.stages.size() - 1;
      if (of->stage.parts.busy() > row.stages[row.slowest].parts.busy())
        row.slowest = row.stages.size() - 1;
    }
    if (std::ssize(row.stages) < replica_.stages()) return std::nullopt;
    row.step_us = pipeline_step_us(std::move(stages), micro_batches, way.virtual_stages);
    for (TrainedStage& stage : row.stages) stage.parts.fill_with_idle(row.step_us);
    row.tokens_per_s = tokens_per_step() / row.step_us * kStepUsPerSecond;
    return row;
  }

  /// Puts the passes of a rank's virtual stages among those of the model.
  void put_on(i64 stage, std::span<const plan::PipelineStage> passes,
              std::vector<plan::PipelineStage>& stages) const {
    for (size_t v = 0; v < passes.size(); ++v)
      stages[v * static_cast<size_t>(replica_.stages()) + static_cast<size_t>(stage)] = passes[v];
  }

  double tokens_per_step() const { return static_cast<double>(options_.batch * options_.sequence); }

  /// Ways to run the layers of a stage.
  struct StageWays {
    std::vector<std::vector<plan::Recompute>> recomputes;
    /// By layer, at every moment of plan::most_under_way.
    std::vector<std::vector<std::vector<plan::LayerWay>>> moments;
    double us = 0;                               ///< of the fastest ones
    std::vector<plan::PipelineStage> fastest{};  ///< of the same, by virtual stage

    bool are_possible() const {
      return std::ranges::none_of(recomputes, [](const auto& of) { return of.empty(); });
    }
  };

  /// Chooses what the layers of a stage recompute; nullopt if nothing fits.
  std::optional<ChosenStage> stage_of(const TrainingRow& row, i64 stage, i64 budget,
                                      Needs& needs) const {
    TrainedStage of = state_of(row.way, stage);
    std::optional<plan::ChosenWays> best;
    StageWays of_best;
    i64 least = std::numeric_limits<i64>::max();
    double least_us = std::numeric_limits<double>::infinity();
    std::vector<plan::PipelineStage> fastest(static_cast<size_t>(row.way.virtual_stages));
    for (const i64 passing : passing_of(stage)) {
      StageWays ways = ways_of(row, stage, passing);
      if (!ways.are_possible()) continue;
      least = std::min(least, of.total + passing + plan::smallest_ways(ways.moments).bytes);
      if (ways.us < least_us) fastest = ways.fastest;
      least_us = std::min(least_us, ways.us);
      auto chosen = plan::fitting_ways(ways.moments, budget - of.total - passing);
      if (!chosen || (best && best->us <= chosen->us)) continue;
      best = std::move(chosen);
      best->bytes += passing;
      of_best = std::move(ways);
    }
    fastest.front().after += of.parts.optimizer;
    put_on(stage, fastest, needs.stages);
    if (!best) {
      if (needs.refusal.empty())
        needs.refusal = fmt::format("a device of stage {} needs {} and has {}", stage,
                                    format_bytes(least), format_bytes(budget));
      return std::nullopt;
    }
    std::vector<plan::PipelineStage> passes(static_cast<size_t>(row.way.virtual_stages));
    const std::vector<size_t>& layers = replica_.layers(stage);
    for (size_t i = 0; i < layers.size(); ++i) {
      const size_t layer = layers[i];
      const plan::Recompute recompute = of_best.recomputes[i][best->ways[i]];
      of.parts += plan::layer_step(forward_[layer], replicas_[layer], recompute, zero_of(row),
                                   row.micro_batches);
      passes[replica_.virtual_stage(layer)] += passes_of(row, layer, recompute);
      if (replica_.keeps_activations(layer)) ++of.layers[static_cast<size_t>(recompute)];
    }
    passes.front().after += of.parts.optimizer;
    of.activations = best->bytes;
    plan::add_bytes(of.total, best->bytes);
    return ChosenStage{std::move(of), std::move(passes)};
  }

  static int zero_of(const TrainingRow& row) { return static_cast<int>(row.way.zero_stage); }

  plan::PipelineStage passes_of(const TrainingRow& row, size_t layer,
                                plan::Recompute recompute) const {
    return plan::layer_passes(forward_[layer], replicas_[layer], recompute, zero_of(row));
  }

  /// Time of a layer in a pipeline whose stages are all alike.
  double us_of(const plan::PipelineStage& passes, const TrainingRow& row) const {
    const double idle =
        static_cast<double>(replica_.stages() - 1) / static_cast<double>(replica_.virtual_stages());
    const double times = static_cast<double>(row.micro_batches) + idle;
    return times * (passes.ahead + passes.back) + passes.after;
  }

  /// Returns the possible bytes of a stage beside those that its layers keep, ascending: of the
  /// head, if the stage runs it, or after it of a layer that computes all again.
  std::set<i64> passing_of(i64 stage) const {
    i64 head = 0;
    for (const size_t layer : replica_.layers(stage)) {
      if (replica_.is_head(layer)) head = std::llround(activations_.begin()->second[layer]);
    }
    std::set<i64> passing{head};
    for (const size_t layer : replica_.layers(stage)) {
      const bool is_full = std::ranges::count(recomputes_of(layer), plan::Recompute::kFull) > 0;
      if (is_full) passing.insert(std::max(head, again_[layer]));
    }
    return passing;
  }

  /// Returns the ways in which no layer that computes all again has more than `passing` bytes.
  StageWays ways_of(const TrainingRow& row, i64 stage, i64 passing) const {
    const i64 virtual_stages = row.way.virtual_stages;
    StageWays of;
    of.fastest.resize(static_cast<size_t>(virtual_stages));
    for (const size_t layer : replica_.layers(stage)) {
      std::vector<plan::Recompute>& recomputes = of.recomputes.emplace_back(recomputes_of(layer));
      if (again_[layer] > passing) std::erase(recomputes, plan::Recompute::kFull);
    }
    if (!of.are_possible()) return of;
    for (const std::vector<i64>& under_way :
         plan::most_under_way(replica_.stages(), stage, row.micro_batches, virtual_stages))
      of.moments.push_back(layers_at(row, stage, of.recomputes, under_way));
    for (size_t i = 0; i < of.recomputes.size(); ++i) {
      const std::vector<plan::LayerWay>& ways = of.moments.front()[i];
      const auto fastest = std::ranges::min_element(ways, {}, &plan::LayerWay::us);
      of.us += fastest->us;
      const size_t layer = replica_.layers(stage)[i];
      of.fastest[replica_.virtual_stage(layer)] +=
          passes_of(row, layer, of.recomputes[i][static_cast<size_t>(fastest - ways.begin())]);
    }
    return of;
  }

  /// Returns the ways of a stage's layers with so many micro-batches under way, by virtual stage.
  std::vector<std::vector<plan::LayerWay>> layers_at(
      const TrainingRow& row, i64 stage,
      const std::vector<std::vector<plan::Recompute>>& recomputes,
      const std::vector<i64>& under_way) const {
    std::vector<std::vector<plan::LayerWay>> layers;
    for (size_t i = 0; i < recomputes.size(); ++i) {
      const size_t layer = replica_.layers(stage)[i];
      const auto times = static_cast<double>(under_way[replica_.virtual_stage(layer)]);
      std::vector<plan::LayerWay>& ways = layers.emplace_back();
      for (const plan::Recompute recompute : recomputes[i]) {
        const double bytes =
            replica_.keeps_activations(layer) ? activations_.at(recompute)[layer] : 0;
        ways.push_back({std::llround(bytes * times), us_of(passes_of(row, layer, recompute), row)});
      }
    }
    return layers;
  }

  /// Returns what a layer may recompute: nothing if it keeps no activations.
  std::vector<plan::Recompute> recomputes_of(size_t layer) const {
    if (replica_.keeps_activations(layer)) return options_.recomputes;
    return {plan::Recompute::kNone};
  }

  /// Returns a stage with its fullest device's state, and without its layers.
  TrainedStage state_of(const TrainingWay& way, i64 stage) const {
    const i64 replicas = way.layout.dp;
    const auto zero = static_cast<int>(way.zero_stage);
    TrainedStage fullest;
    for (i64 r = 0; r < replica_.ranks_per_stage(); ++r) {
      const i64 rank = stage * replica_.ranks_per_stage() + r;
      const TrainedParameters& parameters = replica_.parameters_on(rank);
      TrainedStage of;
      of.state = state_bytes(replica_.parameters(), rank, zero, replicas, options_.state);
      if (zero == 3 &&
          has_replicas(way.layout))  // weights, and their gradients before they are scattered
        of.gathered = plan::times(gathered_.at(replicas)[static_cast<size_t>(rank)], 2);
      for (const i64 part : {of.state, of.gathered, options_.plan.device.overhead_bytes})
        plan::add_bytes(of.total, part);
      of.parts.optimizer = optimizer_us(parameters, zero, replicas);
      if (of.total > fullest.total) fullest = of;
    }
    return fullest;
  }

  /// Time to read and write the state of the parameters that a device updates.
  double optimizer_us(const TrainedParameters& parameters, int zero, i64 replicas) const {
    const plan::HardwareProfile& hardware = *options_.plan.hardware;
    double updated = 0;
    for (const auto& [in_mesh, elements] : parameters) {
      const i64 sharers = zero >= 1 ? replicas * in_mesh : 1;
      updated += static_cast<double>(elements) / static_cast<double>(sharers);
    }
    const plan::TrainingState& state = options_.state;
    const auto each = static_cast<double>(2 * (state.weight + state.gradient + state.optimizer));
    return updated * each / (hardware.memory_gb_per_s * 1e3 * hardware.memory_efficiency);
  }

  i64 budget() const { return options_.plan.device.usable_bytes(); }

  const TrainSearchOptions& options_;
  const TrainedReplica& replica_;
  FoundTraining& found_;
  std::vector<plan::ForwardTimes> forward_;                     ///< by layer
  std::map<plan::Recompute, std::vector<double>> activations_;  ///< bytes of one micro-batch
  std::vector<i64> again_;  ///< bytes that full recomputation makes again, by layer
  std::vector<plan::ReplicaTimes> replicas_;
  std::map<i64, std::vector<i64>> gathered_;  ///< bytes by rank; by number of replicas
};

}  // namespace

void FoundTraining::add(FoundTraining more) {
  std::ranges::move(more.report.rows, std::back_inserter(report.rows));
  std::ranges::move(more.report.refused, std::back_inserter(report.refused));
  unlimited = std::max(unlimited, more.unlimited);
  for (size_t b = 0; b < more.under.size(); ++b) keep_better(b, std::move(more.under[b]));
}

void FoundTraining::keep_better(size_t budget, std::optional<TrainingRow> row) {
  std::optional<TrainingRow>& best = under[budget];
  if (row && (!best || row->tokens_per_s_per_device() > best->tokens_per_s_per_device()))
    best = std::move(row);
}

void price_training(const TrainSearchOptions& options, const TrainedReplica& replica,
                    const std::vector<ServingLayout>& layouts, FoundTraining& found) {
  ReplicaTraining(options, replica, found).run(layouts);
}

}  // namespace shardtool::api
