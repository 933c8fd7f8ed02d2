#pragma once

#include <string>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// Whether a tensor is the bias of a sum of which every device stores its own share, so that no
/// single device's bytes are the whole model's.
bool is_share_of_sum(const Side& shards, const ops::BoundOp& op, size_t tensor);

/// "is counted 4 times", "is missing", or how far the sum of the shares of the devices that add
/// them up is from the whole model's bias; empty where it is the same.
std::string describe_summed_bias(const Side& whole, const Side& shards, const ops::BoundOp& op,
                                 size_t tensor);

}  // namespace shardtool::engine
