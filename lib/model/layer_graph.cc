#include "lib/model/layer_graph.h"

#include <algorithm>
#include <numeric>

namespace shardtool::model {

using namespace ops;  // names of op structs

TensorClass LayerGraph::class_of(size_t i) const {
  bool attends = false, is_linear_attention = false, has_steps = false, recurs = false;
  bool activates = false, mixes = false, leaves = false;
  for (size_t other = 0; other < layer_.ops.size(); ++other) {
    if (root(other) != root(i)) continue;
    const BoundOp& bound = op(other);
    attends = attends || is_any<Attention>(bound);
    has_steps = has_steps || is_any<StepSize>(bound);
    recurs = recurs || is_any<Recurrence, Convolve>(bound);
    activates = activates || is_any<Activation, Xielu, Router>(bound);
    leaves = leaves || bound.op->is_head;
    mixes = mixes || is_any<HyperConnection>(bound);
    const auto* recurrence = as<Recurrence>(bound);
    is_linear_attention = is_linear_attention || recurrence != nullptr;
    if (recurrence != nullptr && recurrence->rule == kernels::RecurrenceRule::kDelta)
      attends = true;
  }
  if (leaves) return TensorClass::kHead;
  if (attends || (is_linear_attention && !has_steps)) return TensorClass::kAttention;
  return recurs || mixes || !activates ? TensorClass::kOther : TensorClass::kMlp;
}

TensorClass class_of_op(const LayerGraph& graph, size_t i) {
  const BoundOp& bound = graph.op(i);
  if (is_any<Embed, ClassToken>(bound)) return TensorClass::kEmbedding;
  if (is_any<Norm, Normalise>(bound)) return TensorClass::kNorms;
  if (is_any<Experts>(bound)) return TensorClass::kExperts;
  if (is_any<Router>(bound)) return TensorClass::kMlp;
  if (is_any<Attention, PositionBias, BucketScores>(bound)) return TensorClass::kAttention;
  if (is_any<ConvolveFrames>(bound)) return TensorClass::kOther;
  if (graph.layer().part == Layer::Part::kStart) return TensorClass::kEmbedding;
  if (graph.layer().part == Layer::Part::kStackEnd) return TensorClass::kOther;
  return graph.class_of(i);
}

TensorClass class_of_weight(const LayerGraph& graph, size_t i, size_t w) {
  if (!is_any<BucketScores>(graph.op(i)) || w > 2) return class_of_op(graph, i);
  return w == 0 ? TensorClass::kEmbedding : TensorClass::kNorms;
}

}  // namespace shardtool::model
