#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/layouts/engine_layout.h"

namespace shardtool::api {

/// Finds the tensors of the checkpoint in those of another tool by the layout's rules of reading:
/// a stored tensor may hold several of them, and each is found in the chunks as a range of rows.
/// Stored tensors that the rules leave out become warnings of the first part. Throws kNoRule for a
/// tensor that no rule takes, kTensorInvalid if two rules give one name, kUnsupported for a model
/// that the layout has no rules for, and the errors of parts_at.
LogicalCheckpoint unstacked(LogicalCheckpoint stored, const layouts::EngineLayout& layout,
                            const mapping::ModelConfig* config);

/// Adds a warning to the first part that names stored tensors which are no weights, if there are
/// any.
void warn_of_left_out(const std::vector<std::string>& names, LogicalCheckpoint& read);

}  // namespace shardtool::api
