#pragma once

#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// Requires every tensor that the family's ops read to be among those that were read from another
/// tool's files. Adds a warning to the first part if no graph tells which these are. Throws
/// kCoverage for a missing tensor, and kConfig and kSizeExpression for sizes that config.json lacks
/// or that contradict each other.
void require_whole_model(LogicalCheckpoint& read, const mapping::ModelConfig& config);

/// Opens files of another tool that must be a whole model, as far as a config.json tells. Throws
/// what open_in_layout and require_whole_model throw.
LogicalCheckpoint open_model_in_layout(const LayoutSource& source);

}  // namespace shardtool::api
