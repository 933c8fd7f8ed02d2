#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/ops/op.h"

namespace shardtool::ops {

/// The sizes that one config.json gives the ops of a graph.
struct ModelSizes {
  std::string family;           ///< of the graph, for errors
  mapping::ModelConfig config;  ///< the part of config.json that the graph reads
  std::map<std::string, i64> sizes;

  /// Throws kSizeExpression for a size that the config does not say, kShapeMismatch above 2^63.
  i64 size(const Dim& dim) const;
};

/// The stored tensors of one WeightRef: one, one per expert or head in their order, or none if an
/// optional one is absent. Indices into the specs.
using BoundWeight = std::vector<size_t>;

/// An op with its tensors in one checkpoint.
struct BoundOp {
  const Op* op = nullptr;
  std::vector<BoundWeight> weights;     ///< one per WeightRef; of Experts those of the form
  const Experts::Form* form = nullptr;  ///< of Experts
};

/// Returns the stored axis of a weight that counts features: the first whose size is not the text
/// 1.
size_t features_axis(const WeightRef& ref);

/// Returns the boolean that the config has there, or the word's own value. Throws kConfig for
/// anything but true or false.
bool is_true(const Word& word, const mapping::ModelConfig& config);

}  // namespace shardtool::ops
