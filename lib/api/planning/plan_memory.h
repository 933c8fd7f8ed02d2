#pragma once

#include <string>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/plan.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Returns the memory of every device under a mapping, without advice and other layouts. `config`
/// may be null: then caches are not counted. Assumptions are appended to `notes`. Throws kUsage for
/// an unknown dtype of the cache.
MemoryReport device_memory(const mapping::ModelConfig* config, const AppliedMapping& applied,
                           const PlanOptions& options, std::vector<std::string>& notes);

/// The same for a model that is bound already, to the tensors of `applied`.
MemoryReport device_memory(const mapping::ModelConfig* config, const PlannedModel& model,
                           const AppliedMapping& applied, const PlanOptions& options,
                           std::vector<std::string>& notes);

/// Like device_memory, and also reports what the options ask for: other numbers of devices, other
/// mappings, and what would fit a budget.
MemoryReport memory_report(const LogicalCheckpoint& source, const AppliedMapping& applied,
                           const MappingChoice& choice, const PlanOptions& options,
                           std::vector<std::string>& notes);

}  // namespace shardtool::api
