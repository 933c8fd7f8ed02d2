#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// The stored tensors of one WeightRef: one, one per expert or head in their order, or none where
/// an optional one is absent. Indices into the specs.
using BoundWeight = std::vector<size_t>;

struct BoundOp {
  const Op* op = nullptr;
  std::vector<BoundWeight> weights;     ///< one per WeightRef; of Experts those of the form
  const Experts::Form* form = nullptr;  ///< of Experts
};

/// One layer, or what stands before the first of a stack or after the last.
struct Layer {
  std::string block;  ///< "start" or the stack's name, "end", or the block's name
  i64 number = -1;    ///< of the layer; -1 outside of them
  std::vector<BoundOp> ops;
  /// The values that it leaves to later layers, made by it or by one before; of the last one what
  /// the model gives.
  std::vector<std::string> passes;
  bool of_prompt = false;  ///< of an encoder, which reads the prompt alone
  bool beside = false;     ///< of what a prompt need not have; see Stack
};

/// The sizes of a graph that the config has all values of, by name. Throws what mapping::evaluate
/// throws.
std::map<std::string, i64> sizes_of(const Graph& graph, const mapping::ModelConfig& config);

/// A graph with the sizes of one config.json and the tensors of one checkpoint.
///
/// B1 layers are in order: of each stack its start and its layers, then the end
/// B2 every bound tensor has the shape that its op says
/// B3 a layer passes exactly what a later one reads before any between them makes it again
struct Model {
  std::shared_ptr<const Graph> graph;  // shared: ops and forms point into it
  mapping::ModelConfig config;         ///< the part of config.json that the graph reads
  std::map<std::string, i64> sizes;
  std::vector<Layer> layers;
  std::vector<std::string> unread;  ///< tensors that no op reads and the graph does not ignore

  i64 size(const Dim& dim) const;
};

/// Throws kUnsupported with the first tensor that the graph needs and the checkpoint lacks,
/// kShapeMismatch for a tensor of another shape, kMappingSchema for a value that a layer reads and
/// none before it made, and what mapping::evaluate throws.
Model bind_model(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                 std::span<const TensorSpec> tensors);

/// An axis of a stored tensor whose size is not the one that config.json and the graph give.
struct ShapeMismatch {
  size_t tensor = 0;  ///< index into the specs
  size_t axis = 0;
  i64 expected = 0;
  std::string dim;                       ///< as the graph writes it: "heads*head_dim"
  std::vector<std::string> config_keys;  ///< paths in config.json that the size depends on
  bool is_embedding = false;             ///< the tensor is the table of an embed op
};
/// All such axes of tensors that the graph reads. Skips tensors that are absent or have another
/// rank or a dtype that packs several weights, and sizes that config.json does not give.
std::vector<ShapeMismatch> shape_mismatches(std::shared_ptr<const Graph> graph,
                                            const mapping::ModelConfig& config,
                                            std::span<const TensorSpec> tensors);

/// Which stored axis of a weight counts features: the first whose size is not written as 1.
size_t features_axis(const WeightRef& ref);

/// Whether the config says true there, or the word does where it says nothing. Throws kConfig for
/// anything but true or false.
bool is_true(const Word& word, const mapping::ModelConfig& config);

}  // namespace shardtool::model
