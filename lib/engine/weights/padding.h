#pragma once

#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// Returns "lm_head.weight: rank 3 padding is not zero" for every device whose padding differs from
/// the layout's fill. Padding does not affect results: engines drop it. Padding that repeats
/// elements is not checked. Only reads tensors with padding.
std::vector<std::string> odd_padding(const Side& shards);

}  // namespace shardtool::engine
