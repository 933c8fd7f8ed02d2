#pragma once

#include <span>
#include <string>

#include "lib/engine/diagnosis/part_difference.h"

namespace shardtool::engine {

/// What a tensor belongs to, for the words.
struct TensorPlace {
  const model::Layer* layer = nullptr;
  /// Names of its sections along the features that it makes ("gate", "up"), where it is fused.
  std::span<const std::string> sections;
};

/// What is there instead, as the rest of a sentence that begins with the rank: the first of
///
///     zeros, one element, a factor     another tensor of the layer, of another layer or expert
///     lines in another order           transposed, rounded otherwise, different
std::string describe(const Side& whole, const Side& shards, const PartDifference& difference,
                     const TensorPlace& place);

}  // namespace shardtool::engine
