#include "lib/api/planning/search/trained_replica.h"

#include <algorithm>
#include <map>

#include "lib/api/planning/plan_cost.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {

TrainedReplica::TrainedReplica(const ServedModel& model, const ServingLayout& layout)
    : placed_(model.place(layout)),
      tp_(layout.tp),
      ranks_per_stage_(layout.ep * layout.tp),
      stages_(layout.pp) {
  const size_t n_layers = placed_->model.bound->layers.size();
  parameters_.resize(n_layers);
  first_rank_.assign(n_layers, -1);
  add_tensors();
  set_stages();
}

/// Counts the parameters of every rank and layer.
void TrainedReplica::add_tensors() {
  const mapping::Resolution& resolution = placed_->applied.resolution;
  ParameterCounts counts(resolution.mesh, placed_->pass->own_tokens());
  const size_t n_layers = parameters_.size();
  // How many tensors of a layout each layer has; the last layer is that of tensors that no op
  // reads.
  std::vector<std::map<const layout::Layout*, i64>> tensors(n_layers + 1);
  for (size_t t = 0; t < resolution.tensors.size(); ++t)
    ++tensors[placed_->model.layers[t].value_or(n_layers)][resolution.tensors[t].layout.get()];
  ranks_.resize(static_cast<size_t>(resolution.mesh.size()));
  for (size_t layer = 0; layer <= n_layers; ++layer) {
    std::vector<TrainedParameters> of_layer(ranks_.size());
    for (const auto& [layout, n] : tensors[layer]) {
      const ParameterCounts::OfLayout& of = counts.of(*layout);
      for (const auto& [rank, elements] : of.elements)
        of_layer[static_cast<size_t>(rank)][of.replicas] += plan::times(n, elements);
    }
    add_layer(layer, of_layer);
  }
}

/// Adds a layer's parameters to those of the ranks, and keeps those of the rank with most.
void TrainedReplica::add_layer(size_t layer, const std::vector<TrainedParameters>& of_layer) {
  for (size_t rank = 0; rank < of_layer.size(); ++rank) {
    for (const auto& [replicas, elements] : of_layer[rank])
      plan::add_bytes(ranks_[rank][replicas], elements);
    if (layer == parameters_.size() || sum_of(of_layer[rank]) <= sum_of(parameters_[layer]))
      continue;
    parameters_[layer] = of_layer[rank];
    first_rank_[layer] = static_cast<i64>(rank);
  }
}

std::vector<std::vector<i64>> TrainedReplica::gathered(std::span<const i64> replicas) const {
  return gathered_weights(placed_->model, placed_->applied.resolution, true,
                          placed_->pass->own_tokens(), replicas);
}

/// Gives every layer to the stage that holds its weights; one without weights to the stage of the
/// layer before it.
void TrainedReplica::set_stages() {
  layers_.resize(static_cast<size_t>(stages_));
  i64 stage = 0;
  for (size_t layer = 0; layer < parameters_.size(); ++layer) {
    if (first_rank_[layer] >= 0) stage = first_rank_[layer] / ranks_per_stage_;
    layers_[static_cast<size_t>(stage)].push_back(layer);
  }
}

bool TrainedReplica::keeps_activations(size_t layer) const {
  const model::Layer& of = placed_->model.bound->layers[layer];
  return of.number >= 0 && !of.beside;
}

std::vector<plan::ForwardTimes> TrainedReplica::forward(const TrainSearchOptions& options,
                                                        const TrainingWay& way) const {
  const plan::HardwareProfile& hardware = *options.plan.hardware;
  model::ReplicaWorkload workload;
  workload.batch = way.micro_batch * token_groups();
  workload.prompt_len = options.sequence;
  workload.sequence_parallel = way.sequence_parallel;
  workload.every_logit = true;
  const double attention_per_us =
      hardware.rates.tflops(plan::Arithmetic::kBf16) * 1e6 * hardware.compute_efficiency;
  std::vector<plan::ForwardTimes> times;
  for (const model::PhasePrice& layer : placed_->pass->prefill_layers(workload, &hardware)) {
    const model::Roofline& roof = *layer.roofline;
    plan::ForwardTimes of;
    of.products = roof.step_us - roof.comm_us - roof.launch_us;
    of.attention = std::min(of.products, layer.amounts.attention_flops / attention_per_us);
    of.collectives = roof.comm_us;
    of.launches = roof.launch_us;
    times.push_back(of);
  }
  return times;
}

double TrainedReplica::activations(const TrainSearchOptions& options, const TrainingWay& way,
                                   plan::Recompute recompute) const {
  const model::StackSizes sizes = model::stack_sizes(*placed_->model.bound);
  return plan::training_activations_per_layer({options.sequence, way.micro_batch, sizes.hidden,
                                               sizes.heads, tp_, way.sequence_parallel, recompute});
}

}  // namespace shardtool::api
