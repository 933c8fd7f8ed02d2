#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/match/assignment.h"

namespace shardtool::mapping {

/// Returns a warning for each entry of "drop", "store" and "tied" in the user's documents whose
/// names no tensor has. Recorded documents are not warned of: the output may lack what was dropped.
std::vector<std::string> unused_entries(const Mapping& mapping, std::span<const TensorSpec> tensors,
                                        const TensorIndex& by_name);

}  // namespace shardtool::mapping
