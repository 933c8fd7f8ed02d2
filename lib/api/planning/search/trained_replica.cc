#include "lib/api/planning/search/trained_replica.h"

#include <algorithm>

#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/virtual_stages.h"
#include "lib/model/flow/handoff.h"

namespace shardtool::api {

TrainedReplica::TrainedReplica(const ServedModel& model, const ServingLayout& layout,
                               i64 virtual_stages)
    : placed_(model.place(layout)),
      sizes_(model::stack_sizes(*placed_->model.bound)),
      tp_(layout.tp),
      ranks_per_stage_(layout.ep * layout.tp),
      stages_(layout.pp),
      virtual_stages_(virtual_stages) {
  parameters_ =
      count_parameters(placed_->model, placed_->applied.resolution, placed_->pass->own_tokens());
  set_stages();
  set_kept();
}

std::vector<std::vector<i64>> TrainedReplica::gathered(std::span<const i64> replicas) const {
  return gathered_weights(placed_->model, placed_->applied.resolution, true,
                          placed_->pass->own_tokens(), replicas);
}

/// Gives every layer to the stage that runs it, and to one of its virtual stages.
void TrainedReplica::set_stages() {
  layers_.resize(static_cast<size_t>(stages_));
  const auto running = model::running_devices(*placed_->model.bound, placed_->model.layouts());
  for (size_t layer = 0; layer < running.size(); ++layer) {
    const i64 stage = running[layer].empty() ? 0 : running[layer].front() / ranks_per_stage_;
    layers_[static_cast<size_t>(stage)].push_back(layer);
  }
  for (const i64 of : virtual_stages_of(*placed_->model.bound, running, virtual_stages_))
    virtual_stage_.push_back(static_cast<size_t>(of));
}

void TrainedReplica::set_kept() {
  const model::LayoutOf layouts = placed_->model.layouts();
  for (const model::Layer& layer : placed_->model.bound->layers) {
    kept_.push_back(std::ranges::max(model::kept_widths(
        *placed_->model.bound, layer, layouts, placed_->mesh, placed_->pass->own_tokens())));
  }
}

bool TrainedReplica::keeps_activations(size_t layer) const {
  const model::Layer& of = placed_->model.bound->layers[layer];
  return of.number >= 0 && !of.is_vision_encoder;
}

bool TrainedReplica::is_head(size_t layer) const {
  return placed_->model.bound->layers[layer].part == model::Layer::Part::kEnd;
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
  const double bytes_per_us = hardware.memory_gb_per_s * 1e3 * hardware.memory_efficiency;
  std::vector<plan::ForwardTimes> times;
  for (const model::PhasePrice& layer : placed_->pass->prefill_layers(workload, &hardware)) {
    const model::Roofline& roof = *layer.roofline;
    plan::ForwardTimes of;
    of.products = roof.step_us - roof.comm_us - roof.launch_us;
    of.attention = std::min(of.products, layer.amounts.attention_flops / attention_per_us);
    for (const model::CommRow& row : layer.comm) {
      const bool hands_over = row.collective.op == plan::CollectiveOp::kPermute;
      (hands_over ? of.handoff : of.collectives) += static_cast<double>(row.count) * row.time.us;
    }
    of.launches = roof.launch_us;
    for (const plan::Arithmetic kind : plan::kArithmetics) {
      if (!hardware.rates.has(kind)) continue;  // products take the values as they are
      const auto k = static_cast<size_t>(kind);
      of.quantising += layer.amounts.quantising_bytes[k] / bytes_per_us;
      of.gradient_quantising += layer.amounts.gradient_quantising_bytes[k] / bytes_per_us;
    }
    times.push_back(of);
  }
  return times;
}

plan::TrainedLayer TrainedReplica::trained_layer(const TrainSearchOptions& options,
                                                 const TrainingWay& way, size_t layer,
                                                 plan::Recompute recompute) const {
  return {options.sequence, way.micro_batch,       sizes_.hidden, ceil_div(sizes_.heads, tp_), tp_,
          kept_[layer],     way.sequence_parallel, recompute};
}

std::vector<double> TrainedReplica::activations(const TrainSearchOptions& options,
                                                const TrainingWay& way,
                                                plan::Recompute recompute) const {
  std::vector<double> bytes;
  for (size_t layer = 0; layer < kept_.size(); ++layer) {
    const plan::TrainedLayer of = trained_layer(options, way, layer, recompute);
    bytes.push_back(is_head(layer) ? plan::training_head_activations(of)
                                   : plan::training_activations_per_layer(of));
  }
  return bytes;
}

std::vector<double> TrainedReplica::recomputed(const TrainSearchOptions& options,
                                               const TrainingWay& way) const {
  std::vector<double> bytes;
  for (size_t layer = 0; layer < kept_.size(); ++layer) {
    bytes.push_back(
        plan::recomputed_activations(trained_layer(options, way, layer, plan::Recompute::kFull)));
  }
  return bytes;
}

}  // namespace shardtool::api
