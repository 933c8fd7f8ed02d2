#pragma once

#include <string>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// True if a tensor is the bias of a sum of which every device stores its own share, so that no
/// single device has the whole model's bytes.
bool is_share_of_sum(const Side& shards, const ops::BoundOp& op, size_t tensor);

/// Returns "is counted 4 times", "is missing", or the distance of the devices' summed shares from
/// the whole model's bias; empty if they are equal.
std::string describe_summed_bias(const Side& whole, const Side& shards, const ops::BoundOp& op,
                                 size_t tensor);

}  // namespace shardtool::engine
