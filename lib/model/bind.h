#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"
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
  /// kStackEnd: after the layers of a vision encoder.
  enum class Part { kStart, kBlock, kStackEnd, kEnd };
  Part part = Part::kBlock;
  std::string block;  ///< "start" or the stack's name, "end", or the block's name
  i64 number = -1;    ///< the layer's index; -1 outside a stack's layers
  std::vector<BoundOp> ops;
  /// The values for later layers, made by this layer or an earlier one; after the last layer, the
  /// model's result.
  std::vector<std::string> passes;
  bool of_prompt = false;          ///< in an encoder, which reads only the prompt
  bool is_vision_encoder = false;  ///< in one; see Stack
};

/// "decoder 3", or the block alone outside a stack's layers.
std::string name_of(const Layer& layer);

/// Returns the graph's sizes for which config.json has all values, read from the part of it that
/// the graph reads. Throws kSizeExpression for values that contradict each other, such as a hidden
/// size that is no multiple of the number of heads, and kConfig as mapping::evaluate.
ops::ModelSizes sizes_of(const Graph& graph, const mapping::ModelConfig& config);

/// An axis of a stored tensor whose size differs from the one in config.json, or for which
/// config.json has no usable size.
struct Misfit {
  size_t tensor = 0;  ///< index into the specs
  size_t axis = 0;
  i64 expected = 0;          ///< 0 for an unusable size
  const Dim* dim = nullptr;  ///< in the graph
  const Op* reader = nullptr;
  std::optional<Error> unusable = {};  ///< says why; unset for a size that differs
};

/// A graph with the sizes of one config.json and the tensors of one checkpoint.
///
/// B1 layers are in order: the start and the layers of each stack, then the end
/// B2 every bound tensor has the shape that its op requires
/// B3 a layer passes a value if and only if a later layer reads it, and no layer between the two
/// makes it anew
struct Model : ops::ModelSizes {
  std::shared_ptr<const Graph> graph;  // shared, because ops and forms point into it
  std::vector<Layer> layers;
  std::vector<std::string> unread;  ///< tensors that no op reads and "ignored" does not match
  /// For kLeaveOut: all misfits in layers whose required tensors exist. Skips tensors of another
  /// rank, and dtypes that pack several weights.
  std::vector<Misfit> misfits;
};

/// Returns the paths in config.json that a dim of the graph depends on, such as "hidden_size".
std::vector<std::string> config_keys(const Graph& graph, const Dim& dim);

/// Returns the extents of all axes of the tensors that a graph may read. Skips sizes that
/// config.json does not give.
std::set<i64> axis_extents(const Graph& graph, const mapping::ModelConfig& config);

/// Treatment of tensors that the checkpoint lacks or has in another shape. kLeaveOut binds the
/// others, which is enough to answer questions about memory. Then B2 does not hold, and a required
/// weight may be empty or lack some of its tensors.
enum class Misfits { kRefuse, kLeaveOut };

/// Tensors that the ops of a model require and its checkpoint lacks. Counts the experts of a layer
/// one by one.
struct MissingTensors {
  i64 count = 0;
  std::string first;            ///< in the order of the ops
  std::set<std::string> names;  ///< of all, in every spelling that the graph allows
};

/// Throws kUnsupported with the first tensor that the graph needs and the checkpoint lacks,
/// kShapeMismatch for a tensor of another shape (both only for kRefuse), kMappingSchema for a value
/// that a layer reads before any layer makes it, and what mapping::evaluate throws. With kLeaveOut
/// adds the required tensors that the checkpoint lacks to `missing`, unless that is null.
Model bind_model(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                 std::span<const TensorSpec> tensors, Misfits misfits = Misfits::kRefuse,
                 MissingTensors* missing = nullptr);

}  // namespace shardtool::model
