#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "lib/base/checked.h"
#include "lib/engine/diagnosis/layer_pair.h"
#include "lib/engine/side.h"
#include "lib/engine/weights/reading_order.h"

namespace shardtool::engine {

/// One of several validations of the same shards that together run all layers, from 0.
struct LayerShare {
  int number = 0;
  int of = 1;
};

/// Returns the layers of a share: one of `of` stretches with about equal bytes of weights on both
/// sides. All shares find the same stretches.
Stretch stretch_of(const LayerShare& share, const std::vector<LayerPair>& layers, const Side& whole,
                   const Side& shards);

/// Returns the tensors of the shards that a layer of the stretch reads.
std::set<size_t> tensors_of(const Stretch& stretch, const std::vector<LayerPair>& layers,
                            const Side& shards);

/// Returns the tensors of the shards whose stored bytes a share judges. A tensor that layers read
/// belongs to the share of the last one that reads all of it; the others are dealt out by number.
/// Every tensor belongs to one share.
std::set<size_t> judged_tensors(const LayerShare& share, const Stretch& stretch,
                                const std::vector<LayerPair>& layers, const Side& shards,
                                const ReadingOrder& order);

/// Returns the bytes of weights that layers of the stretch read, on both sides.
i64 weight_bytes(const Stretch& stretch, const std::vector<LayerPair>& layers, const Side& whole,
                 const Side& shards);

}  // namespace shardtool::engine
