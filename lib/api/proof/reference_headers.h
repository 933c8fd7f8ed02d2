#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/check/finding.h"

namespace shardtool::api {

/// Names and shapes of the shards' tensors against those of the whole model, and dtypes where bits
/// are to be compared; `dropped` are meant to be missing. Where values are compared, the parts of a
/// quantised weight need no counterpart if the other side has the weight in plain numbers.
void compare_headers(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards,
                     std::span<const std::string> dropped, bool compares_values,
                     std::vector<check::Finding>& findings);

/// Whether a tensor has another dtype in the shards.
bool has_other_dtypes(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards);

}  // namespace shardtool::api
