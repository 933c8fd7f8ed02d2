#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/match/companions.h"

namespace shardtool::api {

/// The unsharded shapes that config.json gives tensors: those that the model's graph reads, and
/// those beside them, such as scales, by the rules of the mapping. Keeps references to the
/// constructor's mapping and config.
class UnshardedShapes {
 public:
  /// `candidates` have names that tensors of the model may have, one of them in several spellings.
  /// Throws kUnsupported for a model without a graph.
  UnshardedShapes(const mapping::Mapping& mapping, const mapping::ModelConfig& config,
                  std::span<const TensorSpec> candidates);

  /// True for one of the candidates that the model reads, or that is beside one that it reads.
  bool has(const std::string& name) const;
  /// Returns the shape of a candidate. `spec` has that of a shard, without axes that stack tensors,
  /// which a tensor that the model does not read keeps. Throws kUnsupported for a tensor beside
  /// another whose shape the rules leave open.
  Shape of(const TensorSpec& spec) const;

 private:
  Shape shape_beside(const mapping::CompanionMatch& match, const Shape& leader,
                     const TensorSpec& spec) const;

  const mapping::ModelConfig& config_;
  mapping::Companions companions_;
  std::map<std::string, Shape> of_graph_;
  std::map<std::string, mapping::CompanionMatch> beside_;  ///< tensors that the graph has not
};

}  // namespace shardtool::api
