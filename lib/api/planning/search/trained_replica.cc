#include "lib/api/planning/search/trained_replica.h"

#include <algorithm>
#include <numeric>

#include "lib/api/planning/plan_cost.h"
#include "lib/base/error.h"

namespace shardtool::api {

TrainedReplica::TrainedReplica(const ServedModel& model, const ServingLayout& layout)
    : placed_(model.place(layout)), tp_(layout.tp), stages_(layout.pp) {
  const size_t n_layers = placed_->model.bound->layers.size();
  parameters_.assign(n_layers, 0);
  first_rank_.assign(n_layers, -1);
  add_tensors();
  set_stages();
}

/// Counts the parameters of every rank and layer.
void TrainedReplica::add_tensors() {
  const mapping::Resolution& resolution = placed_->applied.resolution;
  const auto n_ranks = static_cast<size_t>(resolution.mesh.size());
  const size_t n_layers = parameters_.size();
  // By rank and layer; the last column is that of tensors that no op reads.
  std::vector<std::vector<i64>> counts(n_ranks, std::vector<i64>(n_layers + 1, 0));
  for (size_t t = 0; t < resolution.tensors.size(); ++t) {
    const layout::Layout& layout = *resolution.tensors[t].layout;
    const size_t layer = placed_->model.layers[t].value_or(n_layers);
    for (size_t h = 0; h < layout.ranks().size(); ++h) {
      const auto region = layout.holders().region(static_cast<int>(h));
      counts[static_cast<size_t>(layout.ranks()[h])][layer] += image_size(region);
    }
  }
  for (size_t rank = 0; rank < n_ranks; ++rank) {
    ranks_.push_back(std::accumulate(counts[rank].begin(), counts[rank].end(), i64{0}));
    for (size_t layer = 0; layer < n_layers; ++layer) {
      if (counts[rank][layer] <= parameters_[layer]) continue;
      parameters_[layer] = counts[rank][layer];
      first_rank_[layer] = static_cast<i64>(rank);
    }
  }
}

std::vector<std::vector<i64>> TrainedReplica::gathered(std::span<const i64> replicas) const {
  return gathered_weights(placed_->model, placed_->applied.resolution, true, replicas);
}

/// Gives every layer to the stage that holds its weights; one without weights to the stage of the
/// layer before it.
void TrainedReplica::set_stages() {
  layers_.resize(static_cast<size_t>(stages_));
  i64 stage = 0;
  for (size_t layer = 0; layer < parameters_.size(); ++layer) {
    if (first_rank_[layer] >= 0) stage = first_rank_[layer] / tp_;
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
  workload.batch = way.micro_batch;
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
