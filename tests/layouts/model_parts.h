#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::test {

/// Writes what was found in another tool's files, a whole model or not, in place of `output`.
/// Returns the warnings.
std::vector<std::string> write_parts(api::LogicalCheckpoint found, const std::string& output);

}  // namespace shardtool::test
