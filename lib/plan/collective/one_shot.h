#pragma once

#include "lib/plan/collective/collective.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::plan {

/// Largest buffer that engines reduce in one shot: the limit that published scripts of vLLM set for
/// eight devices.
inline constexpr i64 kMostOneShotBytes = i64{8} << 20;

/// Time of a collective of a decode step as serving engines run it. They all-reduce in one shot:
/// every device reads the buffers of all others,
///     latency of a ring + (n - 1) payload / (kOneShotShare peak)
/// This is faster than NCCL for one sequence, and slower on eight devices for many. Other ops,
/// larger buffers, groups across nodes and devices without NVLink take what time_of says.
double us_in_step(const Collective& collective, const HardwareProfile& profile);

}  // namespace shardtool::plan
