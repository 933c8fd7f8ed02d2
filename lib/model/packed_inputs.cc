#include "lib/model/packed_inputs.h"

#include <algorithm>
#include <vector>

#include "lib/model/packed_extents.h"

namespace shardtool::model {

bool fits_codes(const Shape& said, const PackedWeight& weight) {
  const i64 inputs = inputs_of(weight);
  return said.size() == 2 && said[0] == weight.spec.shape[0] && said[1] <= inputs &&
         said[1] > inputs - weight.per_word;
}

std::map<size_t, i64> other_inputs(const std::shared_ptr<const Graph>& graph,
                                   const mapping::ModelConfig& config,
                                   std::span<const TensorSpec> tensors,
                                   std::span<const PackedWeight> weights) {
  constexpr size_t kInputAxis = 1;  // of [out, in] and of [experts, in, out]
  std::vector<TensorSpec> all(tensors.begin(), tensors.end());
  for (const PackedWeight& weight : weights) all.push_back(weight.spec);
  std::map<size_t, i64> inputs;
  try {
    for (const Misfit& misfit : bind_model(graph, config, all, Misfits::kLeaveOut).misfits) {
      if (misfit.unusable || misfit.tensor < tensors.size() || misfit.axis != kInputAxis) continue;
      inputs[misfit.tensor - tensors.size()] = misfit.expected;
    }
  } catch (const Error&) {
    // The command that needs the model says why it cannot be bound.
    return {};
  }
  return inputs;
}

void leave_out_padding(const std::shared_ptr<const Graph>& graph,
                       const mapping::ModelConfig& config, std::span<const TensorSpec> tensors,
                       std::span<PackedWeight> weights,
                       const std::function<bool(const PackedWeight&)>& chosen) {
  const auto has_shape = [](const PackedWeight& weight) { return weight.shape.has_value(); };
  if (graph == nullptr || std::ranges::none_of(weights, has_shape)) return;
  for (const auto& [number, inputs] : other_inputs(graph, config, tensors, weights)) {
    PackedWeight& weight = weights[number];
    const Shape shape{weight.spec.shape[0], inputs};
    if (has_shape(weight) && fits_codes(shape, weight) && chosen(weight)) weight.spec.shape = shape;
  }
}

}  // namespace shardtool::model
