#include "lib/model/memory_facts.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "lib/model/layer_graph.h"
#include "lib/ops/attention/window.h"
#include "lib/plan/byte_count.h"

namespace shardtool::model {
namespace {

using namespace ops;  // names of op structs

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
      if (is_any<Attention>(bound) && !layer.of_prompt && !layer.is_vision_encoder)
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
