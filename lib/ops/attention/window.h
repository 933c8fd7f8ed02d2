#pragma once

#include <optional>

#include "lib/mapping/document/config.h"
#include "lib/ops/attention/attention.h"

namespace shardtool::ops {

/// The positions that an attention of this layer sees, itself included; nothing where it sees all.
/// Throws kConfig where the config asks for a window and does not say on which layers, and
/// kUnsupported for another attention among its layer_types.
std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer);

}  // namespace shardtool::ops
