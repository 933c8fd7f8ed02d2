#include "lib/api/planning/trained_parameters.h"

#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/layout/gathered.h"
#include "lib/model/flow/token_axes.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {

i64 sum_of(const TrainedParameters& parameters) {
  i64 sum = 0;
  for (const auto& [replicas, elements] : parameters) plan::add_bytes(sum, elements);
  return sum;
}

i64 state_bytes(const TrainedParameters& parameters, int zero_stage, i64 replicas,
                plan::TrainingState state) {
  i64 bytes = 0;
  for (const auto& [in_mesh, elements] : parameters) {
    plan::add_bytes(
        bytes, plan::zero_state_bytes(elements, zero_stage, plan::times(replicas, in_mesh), state));
  }
  return bytes;
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

/// Adds a layer's parameters to those of the ranks. Returns the rank with most.
size_t add_layer(const std::vector<TrainedParameters>& of_layer,
                 std::vector<TrainedParameters>& ranks) {
  size_t holder = 0;
  for (size_t rank = 0; rank < of_layer.size(); ++rank) {
    for (const auto& [replicas, elements] : of_layer[rank])
      plan::add_bytes(ranks[rank][replicas], elements);
    if (sum_of(of_layer[rank]) > sum_of(of_layer[holder])) holder = rank;
  }
  return holder;
}

/// Training changes weights, not codes, of which a stored number has several.
void refuse_packed(const PlannedModel& model) {
  if (model.packed.empty()) return;
  throw Error(ErrorCode::kUnsupported, "packed weights are not trained")
      .tensor(quote_for_message(model.placed.specs[model.packed.begin()->first].name))
      .help("plan from the checkpoint that was quantised, or from `split --dequantize`");
}

}  // namespace

PlacedParameters count_parameters(const PlannedModel& model, const mapping::Resolution& resolution,
                                  const mesh::Over& token_axes) {
  refuse_packed(model);
  ParameterCounts counts(resolution.mesh, token_axes);
  const size_t n_layers = model.bound ? model.bound->layers.size() : 0;
  // Numbers of tensors, by layer and layout; the last layer has those that no op reads.
  std::vector<std::map<const layout::Layout*, i64>> tensors(n_layers + 1);
  for (size_t t = 0; t < resolution.tensors.size(); ++t) {
    const size_t layer = model.bound ? model.layers[t].value_or(n_layers) : n_layers;
    ++tensors[layer][resolution.tensors[t].layout.get()];
  }
  PlacedParameters placed;
  placed.ranks.resize(static_cast<size_t>(resolution.mesh.size()));
  for (size_t layer = 0; layer <= n_layers; ++layer) {
    std::vector<TrainedParameters> of_layer(placed.ranks.size());
    for (const auto& [layout, n] : tensors[layer]) {
      const ParameterCounts::OfLayout& of = counts.of(*layout);
      for (const auto& [rank, elements] : of.elements)
        plan::add_bytes(of_layer[static_cast<size_t>(rank)][of.replicas], plan::times(n, elements));
    }
    const size_t holder = add_layer(of_layer, placed.ranks);
    if (layer < n_layers) placed.layers.push_back(std::move(of_layer[holder]));
  }
  return placed;
}

}  // namespace shardtool::api
