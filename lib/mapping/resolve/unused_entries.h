#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// Returns a warning for each entry of "drop" and "store" in the user's documents whose names no
/// tensor has. Recorded documents are not warned of: the output may lack what was dropped.
std::vector<std::string> unused_entries(const Mapping& mapping,
                                        std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
