#pragma once

#include <optional>
#include <string>

#include "lib/engine/diagnosis/part_diagnosis.h"

namespace shardtool::engine {

/// "gate_proj holds up_proj", "holds layer 1's instead of layer 0's", "holds expert 3's instead of
/// expert 2's": set if the stored bytes are the same part of another tensor of the layer, or of the
/// same tensor in another layer or expert.
std::optional<std::string> describe_other_tensor(const Side& whole, const Side& shards,
                                                 const PartDifference& difference,
                                                 const TensorPlace& place);

/// Number of the layer that a device holds instead of `layer` in every tensor, as in a pipeline
/// stage with another stage's files. Nullopt if a tensor is not that layer's.
std::optional<i64> other_layer(const Side& whole, const Side& shards, const model::Layer& layer,
                               i64 rank);

}  // namespace shardtool::engine
