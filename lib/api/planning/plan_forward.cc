#include "lib/api/planning/plan_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/planning/trained_parameters.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/base/error.h"
#include "lib/plan/byte_count.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::api {

i64 cached_tokens(double prefix_hit, i64 prompt_len) {
  if (prefix_hit < 0 || prefix_hit >= 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("a share of {} of a prompt cannot be cached", prefix_hit))
        .help("give --prefix-hit a share from 0 to below 1");
  }
  const auto nearest = std::llround(prefix_hit * static_cast<double>(prompt_len));
  return std::min<i64>(nearest, prompt_len - 1);
}

CostReport planned_cost(const mapping::ModelConfig* config, const AppliedMapping& applied,
                        const PlanOptions& options) {
  model::ReplicaWorkload workload;
  workload.batch = options.workload.batch;
  workload.prompt_len = std::max<i64>(options.workload.prompt_len, 1);
  workload.context = std::max<i64>(options.workload.context, 1);
  workload.cached = cached_tokens(options.workload.prefix_hit, workload.prompt_len);
  workload.sequence_parallel = options.workload.sequence_parallel;
  return forward_cost(config, options.graph, applied, workload, options.workload.kv_dtype,
                      options.hardware ? &*options.hardware : nullptr);
}

namespace {

/// The collectives of one layer's weights and gradients in a step, by ZeRO stage.
std::vector<plan::CollectiveOp> calls_of(int zero_stage) {
  using enum plan::CollectiveOp;
  if (zero_stage == 0) return {kAllReduce};
  if (zero_stage < 3) return {kReduceScatter, kAllGather};
  return {kAllGather, kAllGather, kReduceScatter};
}

/// Adds the collectives among devices that have the same weights.
void add_replica_comm(const mesh::Mesh& mesh, const PlacedParameters& parameters,
                      const mesh::Over& token_axes, const PlanOptions& options,
                      std::vector<model::CommRow>& rows) {
  const TrainingPlan& training = *options.training;
  const std::string outer = mesh.has_axis("dp") ? "replicas" : "dp";
  std::vector<mesh::MeshAxis> axes{{outer, training.data_parallel}};
  axes.insert(axes.end(), mesh.axes().begin(), mesh.axes().end());
  const mesh::Mesh all(std::move(axes));
  const plan::HardwareProfile* hardware = options.hardware ? &*options.hardware : nullptr;
  std::map<std::tuple<std::string, plan::CollectiveOp, i64>, model::CommRow> found;
  for (const TrainedParameters& layer : parameters.layers) {
    for (const auto& [in_mesh, elements] : layer) {
      mesh::Over over;
      if (training.data_parallel > 1) over.push_back({outer});
      if (in_mesh > 1) over.insert(over.end(), token_axes.begin(), token_axes.end());
      const plan::Group group =
          plan::group_along(all, over, hardware == nullptr ? all.size() : hardware->domain());
      if (group.devices == 1) continue;
      for (const plan::CollectiveOp op : calls_of(training.zero_stage)) {
        const bool is_of_weights = op == plan::CollectiveOp::kAllGather;
        const i64 each = is_of_weights ? training.state.weight : training.state.gradient;
        const plan::Collective collective{op, group, plan::times(elements, each)};
        model::CommRow& row = found[{mesh::to_string(over), op, collective.payload_bytes}];
        if (row.count++ > 0) continue;
        row.axis = mesh::to_string(over);
        row.collective = collective;
        row.wire_bytes_per_rank = wire_bytes(collective);
        if (hardware != nullptr) row.time = plan::time_of(collective, *hardware);
      }
    }
  }
  for (auto& [key, row] : found) rows.push_back(std::move(row));
}

/// Adds the sums of the gradients of weights that several stages have.
void add_shared_comm(const mesh::Mesh& mesh, const PlacedParameters& parameters,
                     const PlanOptions& options, std::vector<model::CommRow>& rows) {
  const plan::HardwareProfile* hardware = options.hardware ? &*options.hardware : nullptr;
  const i64 domain = hardware == nullptr ? mesh.size() : hardware->domain();
  for (const SharedWeights& weights : parameters.shared) {
    const auto sum = gradient_sum(weights, mesh, domain, options.training->state.gradient);
    model::CommRow row{mesh::to_string(weights.over), sum, 1, wire_bytes(sum), {}};
    if (hardware != nullptr) row.time = plan::time_of(sum, *hardware);
    rows.push_back(std::move(row));
  }
}

/// Adds the collectives of activations: those of a forward pass, as many in the backward pass, and
/// again those that a full recomputation repeats. What stages hand over is kept.
void add_activation_comm(const PlannedModel& model, const mapping::Resolution& resolution,
                         const PlanOptions& options, std::vector<std::string>& notes,
                         std::vector<model::CommRow>& rows) {
  const TrainingPlan& training = *options.training;
  const model::LayoutOf layouts = model.layouts();
  model::ReplicaWorkload workload;
  workload.prompt_len = training.sequence;
  workload.sequence_parallel = options.workload.sequence_parallel;
  workload.every_logit = true;
  try {
    // Along axes that cut nothing while it computes, every device has its own sequences.
    const model::ForwardPass pass(*model.bound, trained_specs(model), {{}, layouts, layouts},
                                  resolution.mesh);
    workload.batch = plan::times(training.micro_batch, pass.token_groups());
    const auto price = pass.prefill(workload, options.hardware ? &*options.hardware : nullptr);
    for (model::CommRow row : price.comm) {
      const bool is_kept = row.collective.op == plan::CollectiveOp::kPermute;
      const bool is_repeated = training.recompute == plan::Recompute::kFull && !is_kept;
      row.count *= is_repeated ? 3 : 2;
      rows.push_back(std::move(row));
    }
  } catch (const Error& error) {
    const auto why_not = why_not_this_model(error);
    if (!why_not) throw;
    notes.push_back("collectives of activations are not counted: " + *why_not);
  }
}

}  // namespace

std::vector<model::CommRow> training_comm(const mapping::ModelConfig* config,
                                          const AppliedMapping& applied, const PlanOptions& options,
                                          std::vector<std::string>& notes) {
  const mapping::Resolution& resolution = applied.resolution;
  const PlannedModel model = planned_model(config, options.graph, applied);
  if (!model.bound) return {};
  std::vector<model::CommRow> rows =
      model::training_comm(*model.bound, trained_specs(model), weights_of(model.placed, resolution),
                           resolution.mesh, options.hardware ? &*options.hardware : nullptr);
  const mesh::Over token_axes = token_axes_of(model, resolution);
  const i64 groups = mesh::extent(resolution.mesh, token_axes);
  const PlacedParameters parameters = count_parameters(model, resolution, token_axes);
  if (plan::times(options.training->data_parallel, groups) > 1)
    add_replica_comm(resolution.mesh, parameters, token_axes, options, rows);
  add_shared_comm(resolution.mesh, parameters, options, rows);
  if (options.training->sequence > 0) add_activation_comm(model, resolution, options, notes, rows);
  std::ranges::sort(rows, {}, [](const model::CommRow& row) {
    return std::tuple(row.axis, row.collective.op, row.collective.payload_bytes);
  });
  return rows;
}

}  // namespace shardtool::api
