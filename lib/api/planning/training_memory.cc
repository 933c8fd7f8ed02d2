#include "lib/api/planning/training_memory.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include "lib/api/planning/trained_parameters.h"
#include "lib/base/checked.h"
#include "lib/model/flow/handoff.h"
#include "lib/plan/activations.h"

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

}  // namespace

void set_training(const AppliedMapping& applied, const PlannedModel& model,
                  const PlanOptions& options, MemoryReport& report,
                  std::vector<std::string>& notes) {
  const TrainingPlan& training = *options.training;
  const auto parameters =
      count_parameters(model, applied.resolution, token_axes_of(model, applied.resolution));
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.training = state_bytes(parameters, device.rank, training.zero_stage,
                                  training.data_parallel, training.state);
  }
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
  const auto running = model::running_devices(*model.bound, layouts);
  // The first stage stores activations of as many micro-batches as there are stages.
  const auto micro_batches = static_cast<double>(model::pipeline_stages(*model.bound, running));
  std::vector<double> bytes(report.devices.size());
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
      if (!is_head) bytes[device] += plan::training_activations_per_layer(of) * micro_batches;
      passing[device] = std::max(passing[device], is_head ? plan::training_head_activations(of)
                                                          : plan::recomputed_activations(of));
    }
  }
  for (size_t rank = 0; rank < bytes.size(); ++rank)
    report.devices[rank].activations = std::llround(bytes[rank] + passing[rank]);
}

}  // namespace shardtool::api
