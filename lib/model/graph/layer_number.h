#pragma once

#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// Returns the number for a layer, by config.json. Throws what mapping::contains throws, and
/// kConfig for a cycle below 1. O(layers).
i64 value_at(const LayerNumber& number, const mapping::ModelConfig& config, i64 layer);

}  // namespace shardtool::model
