#pragma once

#include "lib/engine/tier.h"

namespace shardtool::engine {

/// Adds the rounding of a layer's result to the native run's verdict:
///
///     worst    >= |shards - exact| / |whole - exact|     about 1 if both round alike
///     rounding >= |whole - exact| / |exact|
///
/// The next layer of the native run begins with the exact values, so each layer is judged by
/// itself.
void judge_rounding(const Tier<double>& exact, Tier<float>& native);

}  // namespace shardtool::engine
