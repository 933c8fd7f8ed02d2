#include "lib/api/planning/plan_forward.h"

#include <algorithm>

#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/planned_model.h"

namespace shardtool::api {

CostReport planned_cost(const mapping::ModelConfig* config, const AppliedMapping& applied,
                        const PlanOptions& options) {
  model::ReplicaWorkload workload;
  workload.batch = options.workload.batch;
  workload.prompt_len = std::max<i64>(options.workload.prompt_len, 1);
  workload.context = std::max<i64>(options.workload.context, 1);
  workload.sequence_parallel = options.workload.sequence_parallel;
  return forward_cost(config, options.graph, applied, workload, options.workload.kv_dtype,
                      options.hardware ? &*options.hardware : nullptr);
}

std::vector<model::CommRow> training_comm(const mapping::ModelConfig* config,
                                          const AppliedMapping& applied,
                                          const PlanOptions& options) {
  if (applied.resolution.gathered.empty()) return {};
  const PlannedModel model = planned_model(config, options.graph, applied);
  if (!model.bound) return {};
  return model::training_comm(*model.bound, trained_specs(model),
                              weights_of(model.placed, applied.resolution), applied.resolution.mesh,
                              options.hardware ? &*options.hardware : nullptr);
}

}  // namespace shardtool::api
