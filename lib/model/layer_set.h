#pragma once

#include "shardtool/mapping/config.h"
#include "shardtool/model/graph.h"

namespace shardtool::model {

/// Whether the layer is one of the set. Throws kUnsupported for a word that the set does not know,
/// kConfig where the config says neither by a list nor by a number which layers those are.
bool contains(const LayerSet& set, const mapping::ModelConfig& config, i64 layer);

}  // namespace shardtool::model
