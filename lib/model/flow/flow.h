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
/// Tokens are placed apart from features: along the axes `own_tokens` every device has tokens of
/// its own, and only experts are cut. Tokens go to the devices of their experts and the results
/// come back (an all_to_all each way); devices with the same tokens add up what their experts made
/// (an all_reduce). Engines distribute tokens where they can (token_axes), and prices assume it.
/// Proofs give every device every token, so that every replica of a weight meets all of them.
struct LayerFlow {
  std::vector<Step> steps;
  std::vector<ValueMove> handoffs;  ///< to the devices of the layer after it
};
/// All moves of a step, or of a layer, in their order.
std::vector<Exchange> exchanges(const Step& step);
std::vector<Exchange> exchanges(const LayerFlow& flow);

/// The values that go from one layer to the next, by their names.
using Stream = std::map<std::string, Value>;

/// Walks one layer, by its number among the model's: `stream` is what the layer before passes, and
/// becomes what this one does.
/// `own_tokens` are the axes along which devices have tokens of their own, some of token_axes.
/// Throws kUnsupported for placements that no rule takes, with both of them.
LayerFlow flow(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
               const mesh::Over& own_tokens, Stream& stream);

}  // namespace shardtool::model
