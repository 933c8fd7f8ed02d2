#pragma once

#include <span>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/api/transform.h"
#include "lib/exec/move.h"

namespace shardtool::api {

/// Source and destination of a run.
struct Task {
  LogicalCheckpoint source;
  TargetLayout target;
};

/// Sorts by name and drops tensors without ranks.
void sort_by_name(const LogicalCheckpoint& source, TargetLayout& target);

/// Requests that moving these tensors, in this order, sends to the object stores of the source.
SourceRequests count_requests(const LogicalCheckpoint& source,
                              std::span<const exec::TensorMove> moves,
                              std::span<const size_t> order, const WriteOptions& options);

/// Moves a checkpoint into a layout; split, merge and reshard are built on this. Plans and checks
/// everything before it writes the first byte; see transform.h for the guarantees.
TransformReport transfer(Task task, const WriteOptions& options, bool compare_replicas);

}  // namespace shardtool::api
