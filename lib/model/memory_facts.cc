#include "lib/model/memory_facts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "lib/ops/attention/window.h"
#include "lib/plan/byte_count.h"

namespace shardtool::model {
namespace {

using namespace ops;  // names of op structs

template <class Kind>
const Kind* as(const BoundOp& bound) {
  return std::get_if<Kind>(&bound.op->kind);
}
template <class... Kinds>
bool is_any(const BoundOp& bound) {
  return (std::holds_alternative<Kinds>(bound.op->kind) || ...);
}

/// A value, identified by the op of its layer that makes it.
struct ValueSource {
  std::optional<size_t> op;  ///< nullopt: an earlier layer makes it
  size_t output = 0;
};

/// The ops of one layer and the data flow between them.
class LayerGraph {
 public:
  explicit LayerGraph(const Layer& layer) : layer_(layer) {
    std::map<std::string, ValueSource> made;
    for (size_t i = 0; i < layer.ops.size(); ++i) {
      const Op& op = *layer.ops[i].op;
      std::vector<ValueSource>& inputs = inputs_.emplace_back();
      for (const std::string& name : op.in) inputs.push_back(made[name]);
      for (size_t o = 0; o < op.out.size(); ++o) made[op.out[o]] = {i, o};
    }
    adds_to_stream_.resize(layer.ops.size());
    is_inner_.resize(layer.ops.size());
    if (const auto stream = made.find("x"); stream != made.end()) mark_stream(stream->second);
    for (size_t i = 0; i < layer.ops.size(); ++i) is_inner_[i] = makes_inner(i);
    join();
  }

  const Layer& layer() const { return layer_; }
  const BoundOp& op(size_t i) const { return layer_.ops[i]; }
  const std::vector<ValueSource>& inputs(size_t i) const { return inputs_[i]; }
  /// True if the op's result reaches the layer's result only through sums, norms and similar ops.
  bool adds_to_stream(size_t i) const { return adds_to_stream_[i]; }
  /// Returns the class of the group of joined ops with op i.
  TensorClass class_of(size_t i) const;

 private:
  /// True if the result has the features of the first input, each at its own place.
  static bool passes_on(const BoundOp& bound) {
    return is_any<Add, Scale, Shift, Norm, Normalise, Resize, Softcap, HyperConnection, Multiply,
                  Split, Join, Clamp, Insert>(bound);
  }
  void mark_stream(const ValueSource& value) {
    if (!value.op || adds_to_stream_[*value.op]) return;
    adds_to_stream_[*value.op] = true;
    if (!passes_on(op(*value.op))) return;
    const bool is_mix = is_any<HyperConnection, Resize, Normalise>(op(*value.op));
    for (const ValueSource& input : inputs_[*value.op]) {
      mark_stream(input);
      if (is_mix) break;
    }
  }
  bool is_inner(const ValueSource& value) const { return value.op && is_inner_[*value.op]; }
  /// True if the op's result is inside a block, after a linear op and before the next residual sum.
  /// A residual sum that only this layer uses, and the norm of an attention's projected result,
  /// begin a new block. Requires that is_inner_ is set for earlier ops.
  bool makes_inner(size_t i) const {
    if (adds_to_stream_[i] || is_any<HyperConnection, Insert>(op(i))) return false;
    if (is_any<Linear, Attention, Recurrence, Convolve, Fade, Router, Experts>(op(i))) return true;
    const auto inner = [this](const ValueSource& input) { return is_inner(input); };
    if (is_any<Add>(op(i))) return std::ranges::all_of(inputs_[i], inner);
    if (is_any<Norm>(op(i)) && is_projected(inputs_[i].front())) return false;
    return std::ranges::any_of(inputs_[i], inner);
  }
  /// True if a linear op made the value from an attention's result.
  bool is_projected(const ValueSource& value) const {
    return is_inner(value) && is_any<Linear>(op(*value.op)) &&
           is_attended(inputs_[*value.op].front());
  }
  bool is_attended(const ValueSource& value) const {
    if (!is_inner(value) || is_any<Linear>(op(*value.op))) return false;
    if (is_any<Attention>(op(*value.op))) return true;
    return std::ranges::any_of(inputs_[*value.op],
                               [this](const ValueSource& input) { return is_attended(input); });
  }
  size_t root(size_t i) const {
    while (joined_to_[i] != i) i = joined_to_[i];
    return i;
  }
  void join() {
    joined_to_.resize(layer_.ops.size());
    std::iota(joined_to_.begin(), joined_to_.end(), size_t{0});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (const ValueSource& input : inputs_[i]) {
        if (is_inner(input)) joined_to_[root(i)] = root(*input.op);
      }
    }
  }

  const Layer& layer_;
  std::vector<std::vector<ValueSource>> inputs_;  ///< by op
  std::vector<bool> adds_to_stream_;
  /// True if a linear op precedes the result, and no residual sum is between.
  std::vector<bool> is_inner_;
  std::vector<size_t> joined_to_;
};

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

/// Returns the class of weight w of an op. The first two weights of BucketScores are a table and
/// its norm.
TensorClass class_of_weight(const LayerGraph& graph, size_t i, size_t w) {
  if (!is_any<BucketScores>(graph.op(i)) || w > 2) return class_of_op(graph, i);
  return w == 0 ? TensorClass::kEmbedding : TensorClass::kNorms;
}

/// Rows of the weight of op `op`.
struct Rows {
  size_t op = 0;
  i64 first = 0;
  i64 count = 0;
};

/// Returns the rows of a linear op of this layer from which a value is made; nullopt if an earlier
/// layer made it.
std::optional<Rows> rows_behind(const Model& model, const LayerGraph& graph,
                                const ValueSource& value) {
  if (!value.op) return std::nullopt;
  const BoundOp& bound = graph.op(*value.op);
  if (const auto* linear = as<Linear>(bound)) return Rows{*value.op, 0, model.size(linear->rows)};
  if (graph.inputs(*value.op).empty()) return std::nullopt;
  auto rows = rows_behind(model, graph, graph.inputs(*value.op).front());
  const auto* split = as<Split>(bound);
  if (!rows || split == nullptr || split->order != Split::Order::kConcat) return rows;
  for (size_t o = 0; o < value.output; ++o) rows->first += model.size(split->sections[o]);
  rows->count = model.size(split->sections[value.output]);
  return rows;
}

/// Returns the name of the earlier layer's value that a linear op reads; empty if this layer makes
/// it.
std::string read_from_outside(const LayerGraph& graph, size_t op) {
  const ValueSource& input = graph.inputs(op).front();
  if (!input.op) return graph.op(op).op->in.front();
  return graph.inputs(*input.op).empty() ? std::string() : read_from_outside(graph, *input.op);
}

size_t row_axis(const Linear& linear) {
  return linear.kernel == layout::Kernel::kOutIn ? 0 : 1;
}

/// Appends the entries that one attention caches to `caches`.
void add_caches(const Model& model, const LayerGraph& graph, size_t i,
                const std::set<std::string>& of_encoder, std::vector<LayerCache>& caches) {
  const Attention& op = *as<Attention>(graph.op(i));
  const auto rows = rows_behind(model, graph, graph.inputs(i)[1]);
  if (!rows) return;
  const BoundOp& keys = graph.op(rows->op);
  if (keys.weights.front().empty()) return;
  LayerCache cache;
  cache.layer = graph.layer().number;
  cache.cross = of_encoder.contains(read_from_outside(graph, rows->op));
  if (!op.causal && !cache.cross) return;
  cache.tensor = keys.weights.front().front();
  cache.axis = row_axis(*as<Linear>(keys));
  cache.first = rows->first;
  cache.rows = rows->count;
  cache.latent = op.cache.has_value();
  cache.units = cache.latent ? 1 : model.size(op.kv_heads);
  cache.unit_elements =
      cache.latent ? model.size(*op.cache) : model.size(op.key_dim) + model.size(op.value_dim);
  cache.window = window_of(op, model.config, graph.layer().number).value_or(0);
  caches.push_back(cache);
  LayerCache more = cache;
  more.latent = true;
  more.units = 1;
  if (op.entries) {
    more.window = 0;
    more.stride = model.size(*op.entries);
    caches.push_back(more);
  }
  constexpr size_t kIndexKeys = 4;
  if (!op.index || !rows_behind(model, graph, graph.inputs(i)[kIndexKeys])) return;
  const i64 key = model.size(op.index->dim);
  if (!op.entries && cache.latent) {
    caches.back().unit_elements += key;
    return;
  }
  more.unit_elements = key;
  caches.push_back(more);
}

/// Number of elements per token that a device caches.
i64 elements_on(const LayerCache& cache, const layout::Layout& layout, i64 rank) {
  if (cache.latent) return cache.units * cache.unit_elements;
  const index::AxisMap held = evaluate(layout.axes()[cache.axis].expr, layout.mesh(), rank);
  i64 rows = 0;
  for (const index::Piece& piece : held.pieces()) {
    const i64 begin = std::max(piece.global, cache.first);
    rows += std::max<i64>(0, std::min(piece.global_end(), cache.first + cache.rows) - begin);
  }
  return ceil_div(rows * cache.units, cache.rows) * cache.unit_elements;
}

/// A byte count per device.
class PerDevice {
 public:
  PerDevice(const LayoutOf& layouts, i64 n_devices)
      : layouts_(layouts), numbers_(static_cast<size_t>(n_devices), 0) {}

  /// Adds `each` elements of `bits` for every index that a device has along an axis of the tensor.
  void add(size_t tensor, size_t axis, i64 each, i64 bits) {
    const layout::Layout& layout = layouts_(tensor);
    const auto& ranks = layout.ranks();
    for (size_t h = 0; h < ranks.size(); ++h) {
      const i64 rows = layout.holders().region(static_cast<int>(h))[axis].image_size();
      plan::add_bytes(numbers_[static_cast<size_t>(ranks[h])],
                      plan::times(plan::times(rows, each), bits) / 8);
    }
  }
  std::vector<i64> take() && { return std::move(numbers_); }

 private:
  const LayoutOf& layouts_;
  std::vector<i64> numbers_;
};

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

std::map<size_t, TensorClass> tensor_classes(const Model& model) {
  std::map<size_t, TensorClass> classes;
  for (const Layer& layer : model.layers) {
    const LayerGraph graph(layer);
    for (size_t i = 0; i < layer.ops.size(); ++i) {
      const auto& weights = layer.ops[i].weights;
      for (size_t w = 0; w < weights.size(); ++w) {
        const TensorClass found = class_of_weight(graph, i, w);
        for (const size_t tensor : weights[w]) classes.emplace(tensor, found);
      }
    }
  }
  return classes;
}

std::vector<LayerCache> attention_caches(const Model& model) {
  std::vector<LayerCache> caches;
  std::set<std::string> of_encoder;  // values made by an encoder
  for (const Layer& layer : model.layers) {
    const LayerGraph graph(layer);
    for (size_t i = 0; i < layer.ops.size(); ++i) {
      const BoundOp& bound = layer.ops[i];
      if (is_any<Attention>(bound) && !layer.of_prompt && !layer.beside)
        add_caches(model, graph, i, of_encoder, caches);
      // The result has the positions of the first input; for an attention, of the queries.
      const auto& in = bound.op->in;
      const bool is_of_encoder =
          layer.of_prompt || (!in.empty() && of_encoder.contains(in.front()));
      for (const std::string& name : bound.op->out) {
        if (is_of_encoder) of_encoder.insert(name);
        if (!is_of_encoder) of_encoder.erase(name);
      }
    }
  }
  return caches;
}

std::vector<DeviceCaches> device_caches(const std::vector<LayerCache>& caches,
                                        const LayoutOf& layouts, i64 n_devices) {
  std::vector<DeviceCaches> devices(static_cast<size_t>(n_devices));
  using Kind = std::tuple<bool, i64, i64, i64>;  // cross, elements, window, stride
  std::vector<std::map<Kind, i64>> layers(devices.size());
  for (const LayerCache& cache : caches) {
    const layout::Layout& layout = layouts(cache.tensor);
    for (const i64 rank : layout.ranks()) {
      const i64 elements = elements_on(cache, layout, rank);
      ++layers[static_cast<size_t>(rank)][{cache.cross, elements, cache.window, cache.stride}];
    }
  }
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    for (const auto& [kind, count] : layers[rank]) {
      const auto& [cross, elements, window, stride] = kind;
      auto& list = cross ? devices[rank].cross : devices[rank].layers;
      list.push_back({elements, window, count, stride});
    }
  }
  return devices;
}

std::vector<i64> recurrent_states(const Model& model, const LayoutOf& layouts, i64 n_devices,
                                  int bits) {
  constexpr i64 kStateBits = 32;
  constexpr size_t kDecays = 3;
  PerDevice bytes(layouts, n_devices);
  bool has_states = false;
  for (const Layer& layer : model.layers) {
    const LayerGraph graph(layer);
    for (size_t i = 0; i < layer.ops.size(); ++i) {
      const BoundOp& bound = layer.ops[i];
      const auto* convolve = as<Convolve>(bound);
      const auto* recurrence = as<Recurrence>(bound);
      if (convolve == nullptr && recurrence == nullptr) continue;
      has_states = true;
      // Decays have one number per head.
      const BoundOp& counted = convolve != nullptr ? bound : graph.op(*graph.inputs(i)[kDecays].op);
      if (counted.weights.front().empty()) continue;
      const size_t tensor = counted.weights.front().front();
      if (convolve != nullptr) {
        bytes.add(tensor, 0, model.size(convolve->taps) - 1, bits);
      } else {
        const i64 state =
            plan::times(model.size(recurrence->key_dim), model.size(recurrence->value_dim));
        bytes.add(tensor, features_axis(counted.op->weights.front()), state, kStateBits);
      }
    }
  }
  return has_states ? std::move(bytes).take() : std::vector<i64>();
}

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

std::optional<i64> source_positions(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (!layer.of_prompt || layer.part != Layer::Part::kStart) continue;
    if (!std::ranges::any_of(layer.ops, [](const BoundOp& op) { return is_any<ExtraInput>(op); }))
      break;
    for (const BoundOp& bound : layer.ops) {
      const auto* table = as<Embed>(bound);
      if (table != nullptr && table->by == Embed::By::kPosition) return model.size(table->rows);
    }
  }
  return std::nullopt;
}

}  // namespace shardtool::model
