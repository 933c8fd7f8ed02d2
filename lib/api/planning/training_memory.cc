#include "lib/api/planning/training_memory.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "lib/api/planning/trained_parameters.h"
#include "lib/api/planning/virtual_stages.h"
#include "lib/base/checked.h"
#include "lib/model/flow/handoff.h"
#include "lib/plan/activations.h"
#include "lib/plan/pipeline.h"

namespace shardtool::api {
namespace {

/// Returns the largest number of different parts of a tensor of these classes.
i64 most_parts(const PlannedModel& model, std::initializer_list<model::TensorClass> classes) {
  const model::LayoutOf layouts = model.layouts();
  i64 most = 1;
  for (size_t t = 0; t < model.classes.size(); ++t) {
    if (std::ranges::find(classes, model.classes[t]) == classes.end()) continue;
    const index::HolderSet& holders = layouts(t).holders();
    i64 parts = 1;
    for (int axis = 0; axis < holders.rank(); ++axis) parts *= std::ssize(holders.maps(axis));
    most = std::max(most, parts);
  }
  return most;
}

void set_state(const AppliedMapping& applied, const PlannedModel& model,
               const TrainingPlan& training, MemoryReport& report) {
  const auto parameters =
      count_parameters(model, applied.resolution, token_axes_of(model, applied.resolution));
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.training = state_bytes(parameters, device.rank, training.zero_stage,
                                  training.data_parallel, training.state);
  }
}

/// Bytes of one micro-batch, by virtual stage.
using KeptActivations = std::vector<double>;

/// Returns the micro-batches under way on the first of these stages, which has most of them, in a
/// step with many.
std::vector<std::vector<i64>> moments_of(i64 stages, const TrainingPlan& training) {
  constexpr i64 kMany = 4;  // from 3 on the moments are those of any step with more
  return plan::most_under_way(stages, 0, kMany * stages, training.virtual_stages);
}

double most_of(const KeptActivations& bytes, const std::vector<std::vector<i64>>& moments) {
  double most = 0;
  for (const std::vector<i64>& under_way : moments) {
    double sum = 0;
    for (size_t v = 0; v < bytes.size(); ++v) sum += bytes[v] * static_cast<double>(under_way[v]);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

void set_training(const AppliedMapping& applied, const PlannedModel& model,
                  const PlanOptions& options, MemoryReport& report,
                  std::vector<std::string>& notes) {
  const TrainingPlan& training = *options.training;
  std::vector<std::vector<i64>> running;
  std::vector<i64> virtual_stage;  // by layer
  if (model.bound) {
    running = model::running_devices(*model.bound, model.layouts());
    virtual_stage = virtual_stages_of(*model.bound, running, training.virtual_stages);
  }
  set_state(applied, model, training, report);
  if (training.sequence == 0) return;
  const auto sizes = model.bound ? model::stack_sizes(*model.bound) : model::StackSizes{};
  if (sizes.layers == 0 || sizes.hidden == 0 || sizes.heads == 0) {
    notes.push_back("activations of training are not counted: " +
                    (model.why_not.empty() ? "the model has no attention" : model.why_not));
    return;
  }
  using enum model::TensorClass;
  plan::TrainedLayer of{training.sequence,
                        training.micro_batch,
                        sizes.hidden,
                        ceil_div(sizes.heads, most_parts(model, {kAttention})),
                        most_parts(model, {kAttention, kMlp}),
                        0,
                        options.workload.sequence_parallel,
                        training.recompute};
  const model::LayoutOf layouts = model.layouts();
  std::vector<KeptActivations> bytes(report.devices.size(),
                                     KeptActivations(static_cast<size_t>(training.virtual_stages)));
  // Once the head has computed its backward pass, its activations make room for those that layers
  // compute again, one at a time.
  std::vector<double> passing(report.devices.size());
  const mesh::Over own_tokens = token_axes_of(model, applied.resolution);
  for (size_t i = 0; i < model.bound->layers.size(); ++i) {
    const model::Layer& layer = model.bound->layers[i];
    const bool is_head = layer.part == model::Layer::Part::kEnd;
    if ((layer.number < 0 && !is_head) || layer.is_vision_encoder) continue;
    const auto kept = model::kept_widths(*model.bound, layer, layouts, report.mesh, own_tokens);
    for (const i64 rank : running[i]) {
      const auto device = static_cast<size_t>(rank);
      of.inner = is_head ? std::ranges::max(kept) : kept[device];
      if (!is_head) {
        bytes[device][static_cast<size_t>(virtual_stage[i])] +=
            plan::training_activations_per_layer(of);
      }
      passing[device] = std::max(passing[device], is_head ? plan::training_head_activations(of)
                                                          : plan::recomputed_activations(of));
    }
  }
  const auto moments = moments_of(model::pipeline_stages(*model.bound, running), training);
  for (size_t rank = 0; rank < bytes.size(); ++rank)
    report.devices[rank].activations = std::llround(most_of(bytes[rank], moments) + passing[rank]);
}

}  // namespace shardtool::api
