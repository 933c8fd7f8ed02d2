#pragma once

#include <span>
#include <string>

#include "lib/engine/diagnosis/part_difference.h"

namespace shardtool::engine {

/// Context of a tensor for messages.
struct TensorPlace {
  const model::Layer* layer = nullptr;
  /// Names of its sections along the output features ("gate", "up") if it is fused.
  std::span<const std::string> sections;
};

/// Describes the stored content; completes a sentence that begins with the rank. Returns the first
/// that applies of
///
///     zeros, one element, a factor     another tensor of the layer, of another layer or expert
///     lines in another order           transposed, rounded otherwise, different
std::string describe(const Side& whole, const Side& shards, const PartDifference& difference,
                     const TensorPlace& place);

}  // namespace shardtool::engine
