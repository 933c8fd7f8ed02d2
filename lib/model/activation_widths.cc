// Activation widths of memory_facts.h.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/model/layer_graph.h"
#include "lib/model/memory_facts.h"
#include "lib/plan/byte_count.h"

namespace shardtool::model {
namespace {

using namespace ops;  // names of op structs

/// Adds to every device's sum `times` its extent along an axis, the largest of the op's tensors.
void add_extents(const LayoutOf& layouts, const BoundWeight& tensors, size_t axis, i64 times,
                 std::vector<i64>& sums) {
  std::vector<i64> widest(sums.size(), 0);
  const layout::Layout* last = nullptr;
  for (const size_t tensor : tensors) {
    const layout::Layout& layout = layouts(tensor);
    if (&layout == std::exchange(last, &layout)) continue;
    const auto& ranks = layout.ranks();
    for (size_t h = 0; h < ranks.size(); ++h) {
      i64& extent = widest[static_cast<size_t>(ranks[h])];
      extent = std::max(extent, layout.holders().local_shape(static_cast<int>(h))[axis]);
    }
  }
  for (size_t rank = 0; rank < sums.size(); ++rank) sums[rank] += widest[rank] * times;
}

/// Axis of the features between the experts' products: of the outputs of gate and up, and of the
/// inputs of down.
size_t inner_axis(const Experts::Form& form, size_t w, size_t down) {
  const size_t rank = form.weights[w].shape.size();
  const bool is_last = (form.kernels[w] == layout::Kernel::kInOut) == (w < down);
  return is_last ? rank - 1 : rank - 2;
}

/// Adds the outputs of gate and up and the inputs of down, for every expert that a token visits.
void add_experts(const Model& model, const LayoutOf& layouts, const Experts& op,
                 const BoundOp& bound, std::vector<i64>& sums) {
  const size_t down = bound.form->order == Experts::Order::kSeparate ? 2 : 1;
  for (size_t w = 0; w <= down && w < bound.weights.size(); ++w) {
    if (!bound.weights[w].empty())
      add_extents(layouts, bound.weights[w], inner_axis(*bound.form, w, down), model.size(op.top_k),
                  sums);
  }
}

/// The weights of the experts of one op.
class KeptExperts {
 public:
  KeptExperts(const Model& model, const LayoutOf& layouts, const Experts& op, const BoundOp& bound)
      : layouts_(layouts),
        form_(*bound.form),
        bound_(bound),
        experts_(model.size(op.experts)),
        embed_(model.size(op.embed)),
        top_k_(model.size(op.top_k)) {}

  /// Adds what the chosen experts of a token keep, if `groups` groups of devices send their tokens
  /// to these experts.
  void add(i64 groups, std::vector<i64>& sums) const {
    std::vector<i64> of_all(sums.size());  // as if a token chose every expert on the device
    const size_t down = form_.order == Experts::Order::kSeparate ? 2 : 1;
    for (size_t w = 0; w <= down && w < bound_.weights.size(); ++w) {
      const size_t axis = inner_axis(form_, w, down);
      std::map<const layout::Layout*, i64> tensors;
      for (const size_t tensor : bound_.weights[w]) ++tensors[&layouts_(tensor)];
      for (const auto& [layout, n] : tensors) add(*layout, n, axis, w == down ? embed_ : 0, of_all);
    }
    for (size_t rank = 0; rank < sums.size(); ++rank)
      sums[rank] += ceil_div(plan::times(of_all[rank], top_k_ * groups), experts_);
  }

 private:
  /// Adds the extents of n such tensors along an axis, and `input` more elements per expert.
  void add(const layout::Layout& layout, i64 n, size_t axis, i64 input,
           std::vector<i64>& of_all) const {
    for (size_t h = 0; h < layout.ranks().size(); ++h) {
      const Shape shape = layout.holders().local_shape(static_cast<int>(h));
      i64 experts = n;
      if (!form_.per_expert)
        experts = form_.in_rows ? experts_in_rows(layout, static_cast<int>(h)) : shape[0];
      const bool has_all = form_.in_rows && axis == 0;  // the rows of all experts
      const i64 width = has_all ? shape[axis] : experts * shape[axis];
      of_all[static_cast<size_t>(layout.ranks()[h])] += width + experts * input;
    }
  }

  /// Number of experts of which a holder has some rows.
  i64 experts_in_rows(const layout::Layout& layout, int holder) const {
    const i64 rows = layout.shape()[0] / experts_;
    std::set<i64> experts;
    const index::Region region = layout.holders().region(holder);
    for (const index::Piece& piece : region[0].pieces()) {
      for (i64 e = piece.global / rows; e * rows < piece.global_end(); ++e) experts.insert(e);
    }
    return std::ssize(experts);
  }

  const LayoutOf& layouts_;
  const Experts::Form& form_;
  const BoundOp& bound_;
  i64 experts_, embed_, top_k_;
};

/// Activation widths of one layer.
struct Widths {
  std::vector<i64> attention, mlp, vocab;

  std::vector<i64>* of(TensorClass tensor_class) {
    switch (tensor_class) {
      case TensorClass::kAttention:
        return &attention;
      case TensorClass::kMlp:
      case TensorClass::kExperts:
        return &mlp;
      case TensorClass::kHead:
        return &vocab;
      default:
        return nullptr;
    }
  }
};

/// Axis of a linear op's weight whose features the layer keeps: the outputs, or the inputs of an op
/// that adds to the residual stream.
size_t kept_axis(const Layer& layer, const LayerGraph& graph, size_t i, const Linear& linear) {
  const bool is_closing = layer.part == Layer::Part::kBlock && graph.adds_to_stream(i);
  return is_closing ? 1 - row_axis(linear) : row_axis(linear);
}

Widths widths_of(const Model& model, const Layer& layer, const LayoutOf& layouts,
                 size_t n_devices) {
  Widths widths{std::vector<i64>(n_devices), std::vector<i64>(n_devices),
                std::vector<i64>(n_devices)};
  const LayerGraph graph(layer);
  for (size_t i = 0; i < layer.ops.size(); ++i) {
    const BoundOp& bound = layer.ops[i];
    std::vector<i64>* const sums = widths.of(class_of_op(graph, i));
    if (sums == nullptr || bound.weights.empty() || bound.weights.front().empty()) continue;
    if (const auto* linear = as<Linear>(bound)) {
      add_extents(layouts, bound.weights.front(), kept_axis(layer, graph, i, *linear), 1, *sums);
    } else if (is_any<Router>(bound)) {
      add_extents(layouts, bound.weights.front(), 0, 1, *sums);
    } else if (const auto* experts = as<Experts>(bound)) {
      add_experts(model, layouts, *experts, bound, *sums);
    }
  }
  return widths;
}

/// Returns the layers of the stack that generates text, or of the encoder if the model has no
/// other.
std::vector<const Layer*> own_layers(const Model& model) {
  std::vector<const Layer*> layers;
  const bool generates = std::ranges::any_of(model.layers, [](const Layer& layer) {
    return layer.part == Layer::Part::kBlock && !layer.is_vision_encoder && !layer.of_prompt;
  });
  for (const Layer& layer : model.layers) {
    if (layer.part != Layer::Part::kBlock || layer.is_vision_encoder) continue;
    if (layer.of_prompt != generates) layers.push_back(&layer);
  }
  return layers;
}

}  // namespace

std::vector<plan::LiveWidths> live_widths(const Model& model, const LayoutOf& layouts,
                                          i64 n_devices) {
  std::vector<plan::LiveWidths> widest(static_cast<size_t>(n_devices));
  const i64 hidden = stack_sizes(model).hidden;
  for (plan::LiveWidths& widths : widest) widths.hidden = hidden;
  for (const Layer& layer : model.layers) {
    if (layer.is_vision_encoder) continue;
    const Widths widths = widths_of(model, layer, layouts, widest.size());
    for (size_t rank = 0; rank < widest.size(); ++rank) {
      widest[rank].attention = std::max(widest[rank].attention, widths.attention[rank]);
      widest[rank].mlp = std::max(widest[rank].mlp, widths.mlp[rank]);
      widest[rank].vocab = std::max(widest[rank].vocab, widths.vocab[rank]);
    }
  }
  return widest;
}

std::vector<i64> kept_widths(const Model& model, const Layer& layer, const LayoutOf& layouts,
                             const mesh::Mesh& mesh, const mesh::Over& own_tokens) {
  std::vector<i64> kept(static_cast<size_t>(mesh.size()));
  const LayerGraph graph(layer);
  for (size_t i = 0; i < layer.ops.size(); ++i) {
    const BoundOp& bound = layer.ops[i];
    if (bound.weights.empty() || bound.weights.front().empty()) continue;
    const BoundWeight& weight = bound.weights.front();
    if (const auto* linear = as<Linear>(bound)) {
      add_extents(layouts, weight, kept_axis(layer, graph, i, *linear), 1, kept);
    } else if (is_any<Router>(bound)) {
      add_extents(layouts, weight, 0, 1, kept);
    } else if (const auto* experts = as<Experts>(bound)) {
      KeptExperts(model, layouts, *experts, bound).add(mesh::extent(mesh, own_tokens), kept);
    }
  }
  return kept;
}

StackSizes stack_sizes(const Model& model) {
  StackSizes sizes;
  for (const Layer* layer : own_layers(model)) {
    ++sizes.layers;
    const LayerGraph graph(*layer);
    for (size_t i = 0; i < layer->ops.size(); ++i) {
      const BoundOp& bound = layer->ops[i];
      if (const auto* attention = as<Attention>(bound))
        sizes.heads = std::max(sizes.heads, model.size(attention->heads));
      const auto* linear = as<Linear>(bound);
      if (linear != nullptr && graph.adds_to_stream(i))
        sizes.hidden = std::max(sizes.hidden, model.size(linear->rows));
      if (const auto* experts = as<Experts>(bound))
        sizes.hidden = std::max(sizes.hidden, model.size(experts->embed));
    }
  }
  return sizes;
}

}  // namespace shardtool::model
