#pragma once

#include "lib/mesh/mesh.h"
#include "lib/plan/placement/placement.h"

namespace shardtool {

inline const auto kR = plan::Placement::replicated();
inline const auto kP = plan::Placement::partial();
inline const auto kS0 = plan::Placement::sharded(0);
inline const auto kS1 = plan::Placement::sharded(1);
inline const mesh::Mesh kFour({{"tp", 4}});

}  // namespace shardtool
