#pragma once

#include <functional>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// From what to what a checkpoint is moved.
struct Task {
  LogicalCheckpoint source;
  TargetLayout target;
};

/// Moves a checkpoint into a layout: the one composition behind split, merge and reshard.
/// Everything is planned and checked before the first byte is written; see transform.h for what is
/// promised. The processes of a launch call it with equal tasks and share the work; the report of
/// the first speaks of all, and what fails in one fails in all.
TransformReport transfer(const std::function<Task()>& open_task, const WriteOptions& options,
                         bool compare_replicas);

}  // namespace shardtool::api
