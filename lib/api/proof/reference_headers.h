#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/check/finding.h"

namespace shardtool::api {

/// Compares names and shapes of the shards' tensors with those of the whole model, and dtypes if
/// bits are compared. The shards may lack the `dropped` tensors. If values are compared, parts of a
/// quantised weight need no counterpart as long as the other side has the weight in plain numbers.
void compare_headers(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards,
                     std::span<const std::string> dropped, bool compares_values,
                     std::vector<check::Finding>& findings);

/// True if a tensor has another dtype in the shards.
bool has_other_dtypes(const LogicalCheckpoint& whole, const LogicalCheckpoint& shards);

}  // namespace shardtool::api
