#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/model/bind.h"
#include "lib/ops/placed_value.h"

namespace shardtool::model {

using ops::Exchange;
using ops::LayoutOf;
using ops::Step;
using ops::Value;
using ops::ValueMove;
using ops::Work;

/// The forward pass of a layer on a mesh, by the placement rules of its ops (ops::Walk).
///
/// Tokens are placed separately from features: along the axes `own_tokens` every device has its own
/// tokens, and only experts are cut. An all_to_all sends tokens to the devices of their experts,
/// and another one returns the results. Devices with the same tokens sum their experts' results by
/// an all_reduce. Engines distribute tokens along token_axes, and prices assume that. Proofs give
/// every device every token, so that every replica of a weight is tested with all of them.
struct LayerFlow {
  std::vector<Step> steps;
  bool depends_on_number = false;  ///< another Layer::number would change it
};
/// Returns all moves of a step, or of all steps, in order.
std::vector<Exchange> exchanges(const Step& step);
std::vector<Exchange> exchanges(const LayerFlow& flow);

/// The values between two layers, by name.
using Stream = std::map<std::string, Value>;

/// Walks one layer, given by its index in the model. `stream` has the layer's inputs and receives
/// its results. `own_tokens` are the axes along which devices have their own tokens, a subset of
/// token_axes. Throws kUnsupported for a combination of placements that no rule accepts.
LayerFlow flow(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
               const mesh::Over& own_tokens, Stream& stream);

}  // namespace shardtool::model
