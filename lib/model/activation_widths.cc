// Activation widths of memory_facts.h.
#include <algorithm>
#include <utility>

#include "lib/model/layer_graph.h"
#include "lib/model/memory_facts.h"

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

/// Adds the outputs of gate and up and the inputs of down, for every expert that a token visits.
void add_experts(const Model& model, const LayoutOf& layouts, const Experts& op,
                 const BoundOp& bound, std::vector<i64>& sums) {
  const size_t down = bound.form->order == Experts::Order::kSeparate ? 2 : 1;
  for (size_t w = 0; w <= down && w < bound.weights.size(); ++w) {
    const size_t rank = bound.form->weights[w].shape.size();
    const bool is_last = (bound.form->kernels[w] == layout::Kernel::kInOut) == (w < down);
    if (!bound.weights[w].empty())
      add_extents(layouts, bound.weights[w], is_last ? rank - 1 : rank - 2, model.size(op.top_k),
                  sums);
  }
}

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
      const bool is_closing = layer.part == Layer::Part::kBlock && graph.adds_to_stream(i);
      const size_t axis = is_closing ? 1 - row_axis(*linear) : row_axis(*linear);
      add_extents(layouts, bound.weights.front(), axis, 1, *sums);
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
    return layer.part == Layer::Part::kBlock && !layer.beside && !layer.of_prompt;
  });
  for (const Layer& layer : model.layers) {
    if (layer.part != Layer::Part::kBlock || layer.beside) continue;
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
    if (layer.beside) continue;
    const Widths widths = widths_of(model, layer, layouts, widest.size());
    for (size_t rank = 0; rank < widest.size(); ++rank) {
      widest[rank].attention = std::max(widest[rank].attention, widths.attention[rank]);
      widest[rank].mlp = std::max(widest[rank].mlp, widths.mlp[rank]);
      widest[rank].vocab = std::max(widest[rank].vocab, widths.vocab[rank]);
    }
  }
  return widest;
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
