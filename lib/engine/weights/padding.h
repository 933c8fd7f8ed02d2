#pragma once

#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// "lm_head.weight: rank 3 padding is not zero", for every device whose padding holds something
/// else than the layout fills it with. Padding changes nothing that a model computes: engines drop
/// it. Padding that repeats elements is not looked at. Reads tensors with padding only.
std::vector<std::string> odd_padding(const Side& shards);

}  // namespace shardtool::engine
