#include "lib/api/proof/unpacked_files.h"

#include <utility>

#include "lib/engine/weights/unpacked_weights.h"
#include "lib/model/packed_inputs.h"

namespace shardtool::api {
namespace {

/// Stored axis of the codes for every axis of the weight.
std::vector<size_t> stored_axes(const model::PackedWeight& weight) {
  if (weight.spec.shape.size() == 3) return {0, 2, 1};  // stored as [experts, out, blocks, bytes]
  if (weight.format->has_input_rows) return {1, 0};
  return {0, 1};
}

/// Converts an axis of the codes to an axis of the unpacked weight. If a word has codes beyond the
/// weight, the axis must not be cut, or its cut counts the weight's indices.
layout::LayoutAxis unpacked_axis(layout::LayoutAxis axis, i64 extent) {
  const i64 counted = axis.expr.size();
  if (counted > extent || (counted > 0 && extent % counted != 0)) {
    axis.expr = layout::whole(extent);
  } else if (counted < extent && counted > 0) {
    axis.expr = layout::scale(axis.expr, extent / counted);
  }
  axis.granularity = 1;
  return axis;
}

}  // namespace

void leave_out_uncut_codes(model::PackedWeight& weight, const layout::Layout& codes) {
  const std::vector<size_t> stored = stored_axes(weight);
  if (stored.size() != 2) return;
  for (size_t a = 0; a < stored.size(); ++a) {
    const layout::LayoutAxis& axis = codes.axes()[stored[a]];
    i64& extent = weight.spec.shape[a];
    const i64 counted = axis.expr.size();
    if (counted < extent && counted > extent - axis.granularity) extent = counted;
  }
}

std::shared_ptr<const layout::Layout> unpacked_layout(const model::PackedWeight& weight,
                                                      const layout::Layout& codes) {
  std::vector<layout::LayoutAxis> axes;
  for (const size_t stored : stored_axes(weight)) {
    axes.push_back(unpacked_axis(codes.axes()[stored], weight.spec.shape[axes.size()]));
  }
  return std::make_shared<layout::Layout>(codes.mesh(), weight.spec.shape, std::move(axes),
                                          codes.index_axes());
}

SideFiles with_unpacked_weights(SideFiles files, const std::shared_ptr<const model::Graph>& graph,
                                const mapping::ModelConfig& config) {
  std::vector<model::PackedWeight> weights = model::packed_weights(config, files.specs);
  if (weights.empty()) return files;
  for (model::PackedWeight& weight : weights)
    leave_out_uncut_codes(weight, *files.layouts[weight.codes]);
  model::leave_out_padding(graph, config, files.specs, weights,
                           [&](const model::PackedWeight& weight) {
                             const auto& axes = files.layouts[weight.codes]->axes();
                             return !axes[stored_axes(weight).back()].expr.is_sharded();
                           });
  for (const model::PackedWeight& weight : weights) {
    files.unpacked[files.specs.size()] = {weight.members(), weight.is_turned()};
    TensorSpec& codes = files.specs[weight.codes];
    if (codes.name == weight.spec.name) codes.name += " (codes)";
    files.specs.push_back(weight.spec);
    files.layouts.push_back(unpacked_layout(weight, *files.layouts[weight.codes]));
    files.biases.emplace_back();
  }
  files.weights = std::make_unique<engine::UnpackedWeights>(
      std::move(files.weights), std::move(weights), files.specs,
      [layouts = files.layouts](size_t tensor) -> const layout::Layout& {
        return *layouts[tensor];
      });
  return files;
}

}  // namespace shardtool::api
