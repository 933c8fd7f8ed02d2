#pragma once

#include <optional>

#include "lib/mapping/document/config.h"
#include "lib/ops/attention/attention.h"

namespace shardtool::ops {

/// Returns the number of positions that an attention of this layer sees, including its own;
/// nullopt: all. Throws kConfig if the config has a window but does not define its layers, and
/// kUnsupported for an unknown attention among its layer_types.
std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer);

}  // namespace shardtool::ops
