#pragma once

#include "shardtool/api/logical_checkpoint.h"
#include "shardtool/api/target_layout.h"
#include "shardtool/api/transform.h"

namespace shardtool::api {

/// Moves a checkpoint into a layout: the one composition behind split, merge and reshard.
/// Everything is planned and checked before the first byte is written; see transform.h for what is
/// promised.
TransformReport transfer(const LogicalCheckpoint& source, TargetLayout target,
                         const WriteOptions& options, bool compare_replicas);

}  // namespace shardtool::api
