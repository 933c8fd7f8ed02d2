#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"
#include "lib/ops/bound_op.h"

namespace shardtool::model {

using ops::BoundOp;
using ops::BoundWeight;
using ops::features_axis;
using ops::is_true;

/// One layer, or the ops before the first layer of a stack or after the last.
struct Layer {
  enum class Part { kStart, kBlock, kStackEnd, kEnd };  ///< kStackEnd: after a tower's layers
  Part part = Part::kBlock;
  std::string block;  ///< "start" or the stack's name, "end", or the block's name
  i64 number = -1;    ///< of the layer; -1 outside of them
  std::vector<BoundOp> ops;
  /// The values that later layers read, made by this layer or an earlier one; of the last layer the
  /// model's result.
  std::vector<std::string> passes;
  bool of_prompt = false;  ///< of an encoder, which reads the prompt alone
  bool beside = false;     ///< of a tower; see Stack
};

/// The sizes of a graph that the config has all values of, by name. Throws what mapping::evaluate
/// throws.
std::map<std::string, i64> sizes_of(const Graph& graph, const mapping::ModelConfig& config);

/// An axis of a stored tensor whose size is not the one that config.json gives.
struct Misfit {
  size_t tensor = 0;  ///< index into the specs
  size_t axis = 0;
  i64 expected = 0;
  const Dim* dim = nullptr;  ///< of the graph
  const Op* reader = nullptr;
};

/// A graph with the sizes of one config.json and the tensors of one checkpoint.
///
/// B1 layers are in order: of each stack its start and its layers, then the end
/// B2 every bound tensor has the shape that its op says
/// B3 a layer passes exactly what a later one reads before any between them makes it again
struct Model : ops::ModelSizes {
  std::shared_ptr<const Graph> graph;  // shared: ops and forms point into it
  std::vector<Layer> layers;
  std::vector<std::string> unread;  ///< tensors that no op reads and the graph does not ignore
  /// For kLeaveOut: every misfit of the layers whose required tensors are there. Skips tensors of
  /// another rank, and dtypes that pack several weights.
  std::vector<Misfit> misfits;
};

/// Returns the paths in config.json that a dim of the graph depends on, such as "hidden_size".
std::vector<std::string> config_keys(const Graph& graph, const Dim& dim);

/// Returns the extents of all axes of the tensors that a graph may read. Skips sizes that
/// config.json does not give.
std::set<i64> axis_extents(const Graph& graph, const mapping::ModelConfig& config);

/// Treatment of tensors that the graph needs and the checkpoint lacks or has in another shape.
/// kLeaveOut binds what is there, which serves questions about memory: B2 then does not hold, and a
/// required weight may be empty or lack some of its tensors.
enum class Misfits { kRefuse, kLeaveOut };

/// Throws kUnsupported with the first tensor that the graph needs and the checkpoint lacks,
/// kShapeMismatch for a tensor of another shape (both only for kRefuse), kMappingSchema for a value
/// that a layer reads and none before it made, and what mapping::evaluate throws.
Model bind_model(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                 std::span<const TensorSpec> tensors, Misfits misfits = Misfits::kRefuse);

}  // namespace shardtool::model
