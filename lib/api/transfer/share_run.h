#pragma once

#include <vector>

#include "lib/api/transfer/write_files.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// Moves the tensors of one share, `is_mine`, and records them. Publishes the output if all shares
/// have ended. Processes of one run need nothing but a folder that all of them see. Each writes
/// bytes with their final values only, so that a share may be moved twice, also at the same time.
/// Fills the report's fields about what was done. Throws kOtherRun for a share of another run, and
/// the errors of transfer().
void run_share(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine,
               bool compare_replicas, TransformReport& report);

}  // namespace shardtool::api
