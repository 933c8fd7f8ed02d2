#include "lib/api/planning/plan_cost.h"

#include <algorithm>
#include <utility>

#include "lib/api/planning/planned_model.h"
#include "lib/api/planning/unpacked_tensors.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/mapping/resolve/axis_usage.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::api {
namespace {

void add_price(std::shared_ptr<const model::Graph> graph, const mapping::ModelConfig& config,
               const AppliedMapping& applied, const std::string& kv_dtype,
               const plan::HardwareProfile* profile, CostReport& report) {
  PlacedTensors placed = placed_tensors(applied);
  const auto packed = add_unpacked(config, placed);
  const model::Model bound = model::bind_model(std::move(graph), config, placed.specs);
  report.workload.activations = dtype_of_norms(bound, placed.specs);
  report.workload.kv_cache_bits = cache_bits(&config, &bound, placed.specs, kv_dtype);
  model::StoredWeights weights = weights_of(placed, applied.resolution);
  weights.packed = packed_reads(packed, placed.specs);
  const model::ForwardPass pass(bound, placed.specs, weights, applied.resolution.mesh);
  report.price = {pass.prefill(report.workload, profile), pass.decode(report.workload, profile)};
  if (profile != nullptr) {
    const auto us_of = [](const model::PhasePrice& decode) { return decode.roofline->step_us; };
    model::ReplicaWorkload of_stage = report.workload;
    of_stage.batch = ceil_div(of_stage.batch, pass.stages());
    report.stage_step_us =
        us_of(pass.stages() == 1 ? report.price->decode : pass.decode(of_stage, profile));
  }
  report.unread = bound.unread;
}

}  // namespace

mesh::Over replica_axes(const mapping::Resolution& resolution) {
  mesh::Over over;
  for (const std::string& axis : resolution.gathered) over.push_back({axis});
  for (const mesh::MeshAxis& axis : mapping::uncut_axes(resolution)) {
    if (std::ranges::find(resolution.gathered, axis.name) == resolution.gathered.end())
      over.push_back({axis.name});
  }
  return over;
}

model::StoredWeights weights_of(const PlacedTensors& placed,
                                const mapping::Resolution& resolution) {
  return {replica_axes(resolution), placed.stored_layouts(), placed.computed_layouts()};
}

std::vector<std::vector<i64>> gathered_weights(const PlannedModel& model,
                                               const mapping::Resolution& resolution, bool trains,
                                               const mesh::Over& token_axes,
                                               std::span<const i64> replicas) {
  const std::vector<TensorSpec> specs = trains ? trained_specs(model) : model.placed.specs;
  const model::StoredWeights weights = weights_of(model.placed, resolution);
  model::WeightGathers gathers(specs, weights, resolution.mesh);
  std::vector<std::vector<i64>> bytes;
  for (const i64 number : replicas)
    bytes.push_back(gathers.largest(*model.bound, number, token_axes));
  return bytes;
}

Dtype dtype_of_norms(const model::Model& bound, const std::vector<TensorSpec>& specs) {
  for (const model::Layer& layer : bound.layers) {
    for (const model::BoundOp& op : layer.ops) {
      const bool is_norm = std::holds_alternative<ops::Norm>(op.op->kind);
      if (!is_norm || op.weights.empty() || op.weights.front().empty()) continue;
      return specs[op.weights.front().front()].dtype;
    }
  }
  return dtype_of_floats(bound, specs);
}

CostReport forward_cost(const mapping::ModelConfig* config, std::shared_ptr<const model::Graph> own,
                        const AppliedMapping& applied, const model::ReplicaWorkload& workload,
                        const std::string& kv_dtype, const plan::HardwareProfile* profile) {
  CostReport report;
  report.workload = workload;
  if (profile != nullptr) report.profile = profile->name;
  if (config == nullptr) {
    report.why_not = "there is no config.json";
    return report;
  }
  auto graph = model::find_graph(*config, std::move(own), report.why_not);
  if (graph == nullptr) return report;
  report.family = graph->family;
  try {
    add_price(std::move(graph), *config, applied, kv_dtype, profile, report);
  } catch (const Error& error) {
    const auto why_not = why_not_this_model(error);
    if (!why_not) throw;
    report.why_not = *why_not;
  }
  return report;
}

}  // namespace shardtool::api
