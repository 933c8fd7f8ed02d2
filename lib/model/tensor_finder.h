#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/name_map.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"
#include "lib/ops/schema.h"
#include "lib/ops/spelling.h"

namespace shardtool::model {

/// Finds tensors of a checkpoint by the names that a graph has for them. A name has placeholders:
/// `layer`, the graph's layer numbers, and the number of an expert or a head. The graph, the config
/// and the tensors must outlive it; names are strings of the graph.
class TensorFinder {
 public:
  TensorFinder(const Graph& graph, const mapping::ModelConfig& config,
               std::span<const TensorSpec> tensors);

  /// Returns the index of the first tensor with a name of the weight. `number` is the expert's or
  /// the head's.
  std::optional<size_t> find(const ops::WeightRef& ref, i64 layer, i64 number);
  std::optional<size_t> find(const std::string& glob, i64 layer, i64 number);
  /// Returns the first name for which the glob stands.
  std::string first_name(const std::string& glob, i64 layer, i64 number);
  /// Returns all names for which the glob stands.
  std::vector<std::string> names(const std::string& glob, i64 layer, i64 number);
  /// Returns the one of them that the checkpoint would use (Spelling::likeliest).
  std::string likeliest(const std::string& glob, i64 layer, i64 number);

 private:
  const ops::Spelling& spelling(const std::string& glob);
  ops::Spelling::NumberOf number_of(i64 layer, i64 number) const;

  const Graph& graph_;
  const mapping::ModelConfig& config_;
  std::span<const TensorSpec> tensors_;
  NameViewMap<size_t> by_name_;
  std::unordered_map<const std::string*, ops::Spelling> spellings_;  ///< one per glob of the graph
};

}  // namespace shardtool::model
