#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/engine/side.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// A layer as one side runs it.
struct SideLayer {
  const model::Layer* layer = nullptr;
  model::LayerFlow flow;  ///< with the hand-offs to the next stage
  model::Stream entry;    ///< how what the layer begins with lies on the devices
  std::span<const i64> devices;
};

/// One layer of both sides: the steps are in the same order, the values have the same names.
struct LayerPair {
  SideLayer whole, shards;

  std::string name() const;
  /// Whether the value is one that the layer is there to make.
  bool is_result(const std::string& value) const;
};

/// All layers in order. Throws kUnsupported where the sides have other tensors in a layer, and what
/// `flow` and `handoff` throw.
std::vector<LayerPair> pair_layers(const Side& whole, const Side& shards);

}  // namespace shardtool::engine
