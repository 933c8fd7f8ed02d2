#pragma once

#include <optional>
#include <string>

#include "lib/engine/diagnosis/part_diagnosis.h"

namespace shardtool::engine {

/// "gate_proj holds up_proj", "holds layer 1's instead of layer 0's", "holds expert 3's instead of
/// expert 2's": where what is stored is the same part of another tensor of the layer, or of the
/// same in another layer.
std::optional<std::string> describe_other_tensor(const Side& whole, const Side& shards,
                                                 const PartDifference& difference,
                                                 const TensorPlace& place);

/// The number of the layer that a device has instead of `layer`, in every tensor: a stage of a
/// pipeline that was given another one's. Nothing where some tensor is not that layer's.
std::optional<i64> other_layer(const Side& whole, const Side& shards, const model::Layer& layer,
                               i64 rank);

/// How a tensor's name differs from another one's: what is between the parts that they share, up to
/// whole words between dots.
struct NamePair {
  std::string own, other;
  std::string before;  ///< the word in front of it, or empty
};
NamePair differing_words(const std::string& own, const std::string& other);

}  // namespace shardtool::engine
