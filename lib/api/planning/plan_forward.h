#pragma once

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/plan.h"

namespace shardtool::api {

/// Returns the costs of a plan's workload under a mapping, on the plan's hardware if it has one. A
/// workload without a prompt or a context counts one token of each. Throws what forward_cost
/// throws, and kUsage for an unknown dtype of the cache.
CostReport planned_cost(const mapping::ModelConfig* config, const AppliedMapping& applied,
                        const PlanOptions& options);

/// Returns the collectives of weights in one step of training, with 16-bit weights and gradients;
/// empty if no weights are gathered, or the model is unknown.
std::vector<model::CommRow> training_comm(const mapping::ModelConfig* config,
                                          const AppliedMapping& applied,
                                          const PlanOptions& options);

}  // namespace shardtool::api
