#pragma once

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/plan.h"

namespace shardtool::api {

/// Returns the costs of a plan's workload under a mapping, on the plan's hardware if it has one. A
/// workload without a prompt or a context counts one token of each. Throws what forward_cost
/// throws, and kUsage for an unknown dtype of the cache.
CostReport planned_cost(const mapping::ModelConfig* config, const AppliedMapping& applied,
                        const PlanOptions& options);

/// Returns the collectives in one step of training with one micro-batch and 16-bit weights,
/// gradients and activations, sorted as those of a phase. Those of weights and gradients are along
/// axes of role "fsdp" (model::training_comm), and of each layer among the devices that have the
/// same weights, by ZeRO stage (plan::layer_passes). Replicas are along an axis "dp" outside of the
/// mesh, called "replicas" if the mesh has a "dp". Stages that share weights add up their gradients
/// (gradient_sum). With the length of a sequence, those of
/// activations are counted, too, or a note says why not. Empty if the model is unknown. Requires
/// PlanOptions::training.
std::vector<model::CommRow> training_comm(const mapping::ModelConfig* config,
                                          const AppliedMapping& applied, const PlanOptions& options,
                                          std::vector<std::string>& notes);

}  // namespace shardtool::api
