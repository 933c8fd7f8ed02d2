#pragma once

#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/logical_checkpoint.h"

namespace shardtool::api {

/// The memory of every device under a mapping that was applied, without advice and other layouts.
/// `config` may be null: then nothing is cached. What was assumed is appended to `notes`. Throws
/// kUsage for an unknown type of cache.
MemoryReport device_memory(const mapping::ModelConfig* config, const AppliedMapping& applied,
                           const PlanOptions& options, std::vector<std::string>& notes);

/// The same, and what the options ask beside it: other numbers of devices, other mappings, and
/// what would fit a budget.
MemoryReport memory_report(const LogicalCheckpoint& source, const AppliedMapping& applied,
                           const MappingChoice& choice, const PlanOptions& options,
                           std::vector<std::string>& notes);

}  // namespace shardtool::api
