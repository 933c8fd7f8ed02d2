#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/engine/side.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// A layer on one side.
struct SideLayer {
  const model::Layer* layer = nullptr;
  model::LayerFlow flow;
  std::vector<ops::ValueMove> handoffs;  ///< to the devices of the layer after it
  model::Stream entry;                   ///< layout of the layer's input on the devices
  std::span<const i64> devices;
};

/// One layer on both sides: the steps have the same order, the values the same names.
struct LayerPair {
  SideLayer whole, shards;

  std::string name() const;
  /// True if the value is a result of the layer.
  bool is_result(const std::string& value) const;
};

/// Layers [begin, end) of a model.
struct Stretch {
  size_t begin = 0, end = 0;

  bool contains(size_t layer) const { return begin <= layer && layer < end; }
};

/// Returns all layers in order. Throws kUnsupported if the sides have different tensors in a layer,
/// and the errors of `flow` and `handoff`.
std::vector<LayerPair> pair_layers(const Side& whole, const Side& shards);

}  // namespace shardtool::engine
