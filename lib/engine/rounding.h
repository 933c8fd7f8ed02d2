#pragma once

#include "lib/engine/tier.h"

namespace shardtool::engine {

/// What a layer's result says of rounding, into the native run's verdict:
///
///     worst    >= |shards - exact| / |whole - exact|     about 1 where the shards round as the
///     whole rounding >= |whole - exact| / |exact|
///
/// The next layer of the native run begins at the exact values, so that each is judged by itself.
void judge_rounding(const Tier<double>& exact, Tier<float>& native);

}  // namespace shardtool::engine
