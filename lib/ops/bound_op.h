#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/mapping/document/config.h"
#include "lib/ops/op.h"

namespace shardtool::ops {

/// The sizes that one config.json gives the ops of a graph.
struct ModelSizes {
  std::string family;           ///< of the graph, for errors
  mapping::ModelConfig config;  ///< the part of config.json that the graph reads
  std::map<std::string, i64> sizes;
  /// Errors of sizes for which config.json has a value that is no positive integer, such as 0. They
  /// matter only if the model has the part with this size.
  std::map<std::string, Error> unusable;
  /// Errors of sizes that depend on a value that config.json does not have.
  std::map<std::string, Error> absent;

  /// Throws the error of an unusable or absent size, kUnknownName for one that the graph does not
  /// have, and kShapeMismatch above 2^63.
  i64 size(const Dim& dim) const;
};

/// The stored tensors of one WeightRef, as indices into the specs: one tensor, one per expert or
/// head in order, or none if an optional one is absent.
using BoundWeight = std::vector<size_t>;

/// An op with its tensors in one checkpoint.
struct BoundOp {
  const Op* op = nullptr;
  std::vector<BoundWeight> weights;     ///< one per WeightRef; for Experts those of the form
  const Experts::Form* form = nullptr;  ///< only for Experts
};

/// Returns the op's weight references, one per entry of BoundOp::weights.
const std::vector<WeightRef>& refs_of(const BoundOp& bound);

/// Returns the stored axis of a weight that counts features: the first one whose size is not
/// written as 1.
size_t features_axis(const WeightRef& ref);

/// Returns the boolean in the config at the word's path, or the word's own value. Throws kConfig
/// for anything except true and false.
bool is_true(const Word& word, const mapping::ModelConfig& config);

}  // namespace shardtool::ops
