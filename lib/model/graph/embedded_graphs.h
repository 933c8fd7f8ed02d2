#pragma once

#include <span>

#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// graphs/*.json, which the build compiles in, sorted by name.
std::span<const GraphText> embedded_graphs();

}  // namespace shardtool::model
