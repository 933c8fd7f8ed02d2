#include "lib/api/planning/trained_parameters.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/layout/gathered.h"
#include "lib/model/flow/handoff.h"
#include "lib/model/flow/token_axes.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {

i64 sum_of(const TrainedParameters& parameters) {
  i64 sum = 0;
  for (const auto& [replicas, elements] : parameters) plan::add_bytes(sum, elements);
  return sum;
}

mesh::Over token_axes_of(const PlannedModel& model, const mapping::Resolution& resolution) {
  if (!model.bound) return {};
  return model::token_axes(*model.bound, model.layouts(), resolution.mesh);
}

namespace {

/// Counts the parameters of layouts, each layout once.
class ParameterCounts {
 public:
  /// The mesh must outlive the object.
  ParameterCounts(const mesh::Mesh& mesh, mesh::Over token_axes)
      : mesh_(mesh), token_axes_(std::move(token_axes)) {}

  struct OfLayout {
    i64 replicas = 1;                           ///< the key of TrainedParameters
    std::vector<std::pair<i64, i64>> elements;  ///< rank and elements of every holder
  };
  const OfLayout& of(const layout::Layout& layout) {
    const auto [found, is_new] = known_.try_emplace(&layout);
    OfLayout& counts = found->second;
    if (!is_new) return counts;
    counts.replicas = mesh::extent(mesh_, layout::replica_axes(layout, token_axes_));
    for (size_t h = 0; h < layout.ranks().size(); ++h) {
      const auto region = layout.holders().region(static_cast<int>(h));
      counts.elements.emplace_back(layout.ranks()[h], index::image_size(region));
    }
    return counts;
  }

 private:
  const mesh::Mesh& mesh_;
  mesh::Over token_axes_;
  std::unordered_map<const layout::Layout*, OfLayout> known_;
};

/// Adds parameters to those of the ranks.
void add_ranks(const std::vector<TrainedParameters>& more, std::vector<TrainedParameters>& ranks) {
  for (size_t rank = 0; rank < more.size(); ++rank) {
    for (const auto& [replicas, elements] : more[rank])
      plan::add_bytes(ranks[rank][replicas], elements);
  }
}

i64 bytes_of_state(const TrainedParameters& parameters, int zero_stage, i64 replicas,
                   plan::TrainingState state) {
  i64 bytes = 0;
  for (const auto& [in_mesh, elements] : parameters) {
    plan::add_bytes(
        bytes, plan::zero_state_bytes(elements, zero_stage, plan::times(replicas, in_mesh), state));
  }
  return bytes;
}

/// Training changes weights, not codes, of which a stored number has several.
void refuse_packed(const PlannedModel& model) {
  if (model.packed.empty()) return;
  throw Error(ErrorCode::kUnsupported, "packed weights are not trained")
      .tensor(quote_for_message(model.placed.specs[model.packed.begin()->first].name))
      .help("plan from the checkpoint that was quantised, or from `split --dequantize`");
}

/// The layers that read a tensor, by tensor: for those that an end of the model or several layers
/// read.
std::map<size_t, std::vector<size_t>> readers_of(const PlannedModel& model) {
  std::map<size_t, std::vector<size_t>> readers;
  const auto add = [&](size_t layer, size_t tensor) {
    const size_t first = *model.layers[tensor];
    const bool is_block = model.bound->layers[layer].part == model::Layer::Part::kBlock;
    if (is_block && first == layer) return;
    std::vector<size_t>& of = readers[tensor];
    if (of.empty()) of.push_back(first);
    if (of.back() != layer) of.push_back(layer);
  };
  for (size_t layer = 0; layer < model.bound->layers.size(); ++layer) {
    for (const model::BoundOp& op : model.bound->layers[layer].ops) {
      for (const model::BoundWeight& weight : op.weights) {
        for (const size_t tensor : weight) add(layer, tensor);
      }
    }
  }
  return readers;
}

/// Counts the parameters of a bound model by layer.
class PlacedCounts {
 public:
  /// The arguments must outlive the object.
  PlacedCounts(const PlannedModel& model, const mapping::Resolution& resolution,
               const mesh::Over& token_axes)
      : resolution_(resolution), counts_(resolution.mesh, token_axes) {
    const size_t n_layers = model.bound ? model.bound->layers.size() : 0;
    layers_.resize(n_layers);
    placed_.ranks.resize(static_cast<size_t>(resolution.mesh.size()));
    placed_.unused.resize(placed_.ranks.size());
    std::map<size_t, std::vector<size_t>> readers;
    if (model.bound) {
      running_ = model::running_devices(*model.bound, model.layouts());
      readers = readers_of(model);
    }
    for (size_t t = 0; t < resolution.tensors.size(); ++t) {
      const layout::Layout* layout = resolution.tensors[t].layout.get();
      const auto several = readers.find(t);
      if (several != readers.end()) {
        add_shared(*layout, several->second, model);
      } else if (model.bound && model.layers[t]) {
        ++layers_[*model.layers[t]][{layout, false}];
      } else {
        ++unread_[{layout, false}];
      }
    }
  }

  PlacedParameters take() && {
    add_ranks(on_ranks(unread_, {}), placed_.ranks);
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      auto of_layer = on_ranks(layers_[layer], running_[layer]);
      add_ranks(of_layer, placed_.ranks);
      placed_.layers.push_back(std::move(*std::ranges::max_element(of_layer, {}, sum_of)));
    }
    return std::move(placed_);
  }

 private:
  /// Numbers of tensors by layout. True: the devices that run the layer alone train them.
  using Tensors = std::map<std::pair<const layout::Layout*, bool>, i64>;

  /// Adds a tensor that an end of the model or several layers read, once on each stage.
  void add_shared(const layout::Layout& layout, const std::vector<size_t>& readers,
                  const PlannedModel& model) {
    std::vector<size_t> stages;  // first reader of each
    for (const size_t layer : readers) {
      const bool is_new = std::ranges::none_of(stages, [&](size_t other) {
        return model::have_common(running_[layer], running_[other]);
      });
      if (is_new) stages.push_back(layer);
    }
    const bool is_of_block = model.bound->layers[stages.front()].part == model::Layer::Part::kBlock;
    const bool is_narrow = stages.size() > 1 || !is_of_block;
    for (const size_t layer : stages) ++layers_[layer][{&layout, is_narrow}];
    if (!is_narrow) return;
    const ParameterCounts::OfLayout& of = counts_.of(layout);
    i64 most = 0;
    for (const auto& [rank, elements] : of.elements) {
      const bool is_read = std::ranges::any_of(stages, [&, at = rank](size_t layer) {
        return std::ranges::binary_search(running_[layer], at);
      });
      if (!is_read)
        plan::add_bytes(placed_.unused[static_cast<size_t>(rank)][of.replicas], elements);
      most = std::max(most, elements);
    }
    if (stages.size() > 1) share(stages, most);
  }

  void share(const std::vector<size_t>& stages, i64 elements) {
    const auto found = std::ranges::find(placed_.shared, stages, &SharedWeights::layers);
    if (found != placed_.shared.end()) return plan::add_bytes(found->elements, elements);
    mesh::Over over;
    for (const mesh::MeshAxis& axis : resolution_.mesh.axes()) {
      const auto index_of = [&](size_t layer) {
        return resolution_.mesh.index_on(axis.name, running_[layer].front());
      };
      const bool differs = std::ranges::any_of(
          stages, [&](size_t layer) { return index_of(layer) != index_of(stages.front()); });
      if (differs) over.push_back({axis.name});
    }
    placed_.shared.push_back({stages, std::move(over), elements});
  }

  std::vector<TrainedParameters> on_ranks(const Tensors& tensors, std::span<const i64> running) {
    std::vector<TrainedParameters> ranks(placed_.ranks.size());
    for (const auto& [key, n] : tensors) {
      const ParameterCounts::OfLayout& of = counts_.of(*key.first);
      for (const auto& [rank, elements] : of.elements) {
        if (key.second && !std::ranges::binary_search(running, rank)) continue;
        plan::add_bytes(ranks[static_cast<size_t>(rank)][of.replicas], plan::times(n, elements));
      }
    }
    return ranks;
  }

  const mapping::Resolution& resolution_;
  ParameterCounts counts_;
  std::vector<std::vector<i64>> running_;  ///< model::running_devices, by layer
  std::vector<Tensors> layers_;
  Tensors unread_;
  PlacedParameters placed_;
};

}  // namespace

PlacedParameters count_parameters(const PlannedModel& model, const mapping::Resolution& resolution,
                                  const mesh::Over& token_axes) {
  refuse_packed(model);
  return PlacedCounts(model, resolution, token_axes).take();
}

i64 state_bytes(const PlacedParameters& parameters, i64 rank, int zero_stage, i64 replicas,
                plan::TrainingState state) {
  const auto device = static_cast<size_t>(rank);
  i64 bytes = bytes_of_state(parameters.ranks[device], zero_stage, replicas, state);
  plan::add_bytes(
      bytes, bytes_of_state(parameters.unused[device], zero_stage, replicas, {state.weight, 0, 0}));
  return bytes;
}

plan::Collective gradient_sum(const SharedWeights& weights, const mesh::Mesh& mesh, i64 domain,
                              i64 gradient_bytes) {
  const i64 stages = std::ssize(weights.layers);
  const i64 nodes = plan::group_along(mesh, weights.over, domain).nodes;
  return {plan::CollectiveOp::kAllReduce,
          {stages, std::min(stages, nodes)},
          plan::times(weights.elements, gradient_bytes)};
}

}  // namespace shardtool::api
