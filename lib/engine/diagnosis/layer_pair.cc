#include "lib/engine/diagnosis/layer_pair.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/flow/handoff.h"

namespace shardtool::engine {
namespace {

/// Takes in `stream` the layout of the layer's input and replaces it by that of its output.
SideLayer side_layer(const Side& side, size_t layer, model::Stream& stream) {
  SideLayer one;
  one.layer = &side.model->layers.at(layer);
  one.entry = stream;
  one.flow = model::flow(*side.model, layer, side.layouts, side.mesh, {}, stream);
  one.devices = model::devices_of(*side.model, layer, side.layouts);
  return one;
}

void require_same_ops(const LayerPair& pair) {
  const auto& a = pair.whole.flow.steps;
  const auto& b = pair.shards.flow.steps;
  const auto same_op = [](const ops::Step& x, const ops::Step& y) {
    return x.op->op == y.op->op && x.op->form == y.op->form;
  };
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), same_op)) return;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("the shards have other tensors in {} than the unsharded model", pair.name()));
}

}  // namespace

std::string LayerPair::name() const {
  return model::name_of(*whole.layer);
}

bool LayerPair::is_result(const std::string& value) const {
  return std::ranges::count(whole.layer->passes, value) > 0;
}

std::vector<LayerPair> pair_layers(const Side& whole, const Side& shards) {
  std::vector<LayerPair> pairs(whole.model->layers.size());
  model::Stream of_whole, of_shards;
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].whole = side_layer(whole, i, of_whole);
    pairs[i].shards = side_layer(shards, i, of_shards);
    require_same_ops(pairs[i]);
    if (i == 0) continue;
    SideLayer& before = pairs[i - 1].shards;
    before.handoffs = model::handoffs(before.devices, pairs[i].shards.devices, shards.mesh,
                                      pairs[i].shards.entry);
  }
  return pairs;
}

}  // namespace shardtool::engine
