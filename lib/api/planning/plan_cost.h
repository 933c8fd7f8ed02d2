#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/mapping/document/config.h"
#include "lib/model/price.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

/// What a forward pass of a model costs under a mapping.
struct CostReport {
  std::string family;   ///< of the graph; empty without one
  std::string why_not;  ///< why nothing is priced; else empty
  std::optional<model::Price> price;
  model::Workload workload;
  std::string profile;              ///< its name; empty without one
  std::vector<std::string> unread;  ///< tensors that the graph does not read, such as scales
};

/// The price of the model under a mapping that was applied, activations in the dtype of its norms.
/// A model whose family has no graph, or whose tensors are not those of the graph, has none and a
/// reason. `own` is a graph of one's own, or null: the family's. `config` may be null. Throws
/// kUsage for a workload that cannot be.
CostReport forward_cost(const mapping::ModelConfig* config, std::shared_ptr<const model::Graph> own,
                        const AppliedMapping& applied, const model::Workload& workload,
                        const plan::HardwareProfile* profile);

/// The profile that is built in under this name, or the file when it ends in ".json". Throws
/// kUnknownName, kHardwareProfile, and what io::read_text throws.
plan::HardwareProfile load_profile(const std::string& name_or_file);
/// Every profile that is built in, by name.
std::vector<plan::HardwareProfile> list_profiles();
/// The JSON text of one. Throws kUnknownName with near misses.
std::string profile_text(const std::string& name);

}  // namespace shardtool::api
