#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/planning/cost_report.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/mapping/document/config.h"
#include "lib/model/price.h"
#include "lib/model/weight_gathers.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

/// Returns the mesh axes along which devices have sequences of their own and compute with equal
/// weights: those of role "fsdp", and those along which no tensor is cut.
mesh::Over replica_axes(const mapping::Resolution& resolution);

/// Returns the layouts of the placed tensors as stored and as computed with. `placed` must outlive
/// the result.
model::StoredWeights weights_of(const PlacedTensors& placed, const mapping::Resolution& resolution);

/// Returns, for each number of replicas and by rank, the bytes that a device gathers for the
/// largest layer of a bound model (WeightGathers::largest); with `trains`, at the 16 bits that
/// training keeps, and also from the devices along `token_axes`.
std::vector<std::vector<i64>> gathered_weights(const PlannedModel& model,
                                               const mapping::Resolution& resolution, bool trains,
                                               const mesh::Over& token_axes,
                                               std::span<const i64> replicas);

/// Returns the price of the model under a mapping, with activations in the dtype of its norms and
/// the cache that cache_bits gives for `kv_dtype`. If the family has no graph, or the tensors do
/// not fit it, the report has a reason instead of a price. `own` is a user's graph; null: the
/// family's. `config` may be null. Throws kUsage for an impossible workload.
CostReport forward_cost(const mapping::ModelConfig* config, std::shared_ptr<const model::Graph> own,
                        const AppliedMapping& applied, const model::ReplicaWorkload& workload,
                        const std::string& kv_dtype, const plan::HardwareProfile* profile);

/// Returns the dtype of activations: that of the model's first norm that has a weight, since
/// quantised models store norms unquantised; without norms that of its first F32, F16 or BF16
/// weight.
Dtype dtype_of_norms(const model::Model& bound, const std::vector<TensorSpec>& specs);

}  // namespace shardtool::api
