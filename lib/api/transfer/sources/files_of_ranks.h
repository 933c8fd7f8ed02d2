#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Throws kCoverage for files of single ranks of an output that were opened without their manifest
/// (format::kFilesOfRanks): their tensors are parts, and nothing says of what.
void refuse_files_of_ranks(const format::Checkpoint& opened);
void refuse_files_of_ranks(const LogicalCheckpoint& source);

}  // namespace shardtool::api
