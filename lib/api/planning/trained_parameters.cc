#include "lib/api/planning/trained_parameters.h"

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

const ParameterCounts::OfLayout& ParameterCounts::of(const layout::Layout& layout) {
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

std::vector<TrainedParameters> trained_parameters(const PlannedModel& model,
                                                  const mapping::Resolution& resolution) {
  ParameterCounts counts(resolution.mesh, token_axes_of(model, resolution));
  std::vector<TrainedParameters> by_rank(static_cast<size_t>(resolution.mesh.size()));
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    const ParameterCounts::OfLayout& of = counts.of(*tensor.layout);
    for (const auto& [rank, elements] : of.elements)
      plan::add_bytes(by_rank[static_cast<size_t>(rank)][of.replicas], elements);
  }
  return by_rank;
}

}  // namespace shardtool::api
