#pragma once

#include "lib/api/plan.h"

namespace shardtool::api {

/// What the workload of a plan costs under a mapping that was applied, on the plan's hardware where
/// it has one. A workload without a prompt or a context counts one token of each. Throws what
/// forward_cost throws, and kUsage for an unknown type of cache.
CostReport planned_cost(const mapping::ModelConfig* config, const AppliedMapping& applied,
                        const PlanOptions& options);

}  // namespace shardtool::api
