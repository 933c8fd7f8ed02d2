#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/transfer/placed_tensors.h"
#include "lib/mapping/document/config.h"
#include "lib/model/price.h"
#include "lib/model/weight_gathers.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

/// Costs of a forward pass of a model under a mapping.
struct CostReport {
  std::string family;   ///< of the graph; empty without a graph
  std::string why_not;  ///< why there is no price; else empty
  std::optional<model::Price> price;
  model::ReplicaWorkload workload;
  std::string profile;              ///< name of the profile; empty without one
  std::string untimed;              ///< why there are no times although there is hardware
  std::vector<std::string> unread;  ///< tensors that the graph does not read, such as scales
};

/// Returns the layouts of the placed tensors as stored and as computed with. `placed` must outlive
/// the result.
model::StoredWeights weights_of(const PlacedTensors& placed, const mapping::Resolution& resolution);

/// Returns the price of the model under a mapping, with activations in the dtype of its norms and
/// the cache that cache_bits gives for `kv_dtype`. If the family has no graph, or the tensors do
/// not fit it, the report has a reason instead of a price. `own` is a user's graph; null: the
/// family's. `config` may be null. Throws kUsage for an impossible workload.
CostReport forward_cost(const mapping::ModelConfig* config, std::shared_ptr<const model::Graph> own,
                        const AppliedMapping& applied, const model::ReplicaWorkload& workload,
                        const std::string& kv_dtype, const plan::HardwareProfile* profile);

/// Returns the dtype of activations: that of the model's first norm that has a weight, since
/// quantised models store norms unquantised.
Dtype dtype_of_norms(const model::Model& bound, const std::vector<TensorSpec>& specs);

/// Loads the built-in profile of this name, or a file if the name ends in ".json". Throws
/// kUnknownName, kHardwareProfile, and what store::read_text throws.
plan::HardwareProfile load_profile(const std::string& name_or_file);
/// Returns all built-in profiles, sorted by name.
std::vector<plan::HardwareProfile> list_profiles();
/// Returns the JSON text of a built-in profile. Throws kUnknownName with similar names.
std::string profile_text(const std::string& name);

}  // namespace shardtool::api
