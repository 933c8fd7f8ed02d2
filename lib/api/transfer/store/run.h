#pragma once

#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// True if a run can send each byte of its output once. Padding that repeats elements is made from
/// what was written, so that it needs files (staged_output.h).
bool can_stream(const TargetLayout& target);

/// Moves the tensors of a run to an output s3://bucket/prefix: parts are sent while the run goes
/// on, in any order, and no payload is kept on this machine's disks (place.h has the objects). The
/// other files follow, the manifest last.
///
/// With a share, moves the tensors that `is_mine` selects and leaves a record; the share that finds
/// all records does finish(). Shares of one run use the same uploads: parts in which several have
/// bytes are put together from fragments.
///
/// An output that --force replaces stays readable until all parts of the new one are there; shares
/// delete it when the first of them begins.
///
/// A failed run keeps what it has sent for --resume if it is worth that, else it ends its uploads
/// and deletes its objects. A share keeps it always. A store has no locks: the later of two runs
/// that write one prefix at once discards what the other has sent, and the other fails (place.h).
///
/// Throws kOutputExists, kOutputAliasesInput, kOtherRun, and the errors of the store and of moving.
void run_to_store(const WriteRun& run, const WriteOptions& options,
                  const std::vector<bool>& is_mine, bool compare_replicas, TransformReport& report);

/// Publishes a whole output whose run was cut off between its manifest and the end, and deletes
/// what a share has left beside one that was published.
void tidy_up(const WriteRun& run, const WriteOptions& options);

}  // namespace shardtool::api
