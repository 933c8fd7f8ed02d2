#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// Source and destination of a run.
struct Task {
  LogicalCheckpoint source;
  TargetLayout target;
};

/// Moves a checkpoint into a layout; split, merge and reshard are built on this. Plans and checks
/// everything before it writes the first byte; see transform.h for the guarantees.
TransformReport transfer(Task task, const WriteOptions& options, bool compare_replicas);

}  // namespace shardtool::api
