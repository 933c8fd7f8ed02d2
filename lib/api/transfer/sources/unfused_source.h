#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mapping/resolve/read_parts.h"

namespace shardtool::api {

/// Finds the tensors of the model in stored ones by rules of "read": a stored tensor may hold
/// several of them, and each is found in its chunks as ranges of one axis. Of a `layout`, every
/// tensor has a rule, and the tensors that are no weights become a warning of the first part;
/// without one (null), tensors without a rule are the model's. Throws kNoRule for a tensor that
/// lacks its rule, kTensorInvalid if two stored tensors hold one, and the errors of parts_at.
LogicalCheckpoint unfused(LogicalCheckpoint stored, const mapping::ReadRules& rules,
                          const mapping::ModelConfig* config, const layouts::EngineLayout* layout);

/// Adds a warning to the first part that names stored tensors which are no weights, if there are
/// any.
void warn_of_left_out(const std::vector<std::string>& names, LogicalCheckpoint& read);

}  // namespace shardtool::api
