#pragma once

#include <string>
#include <vector>

#include "shardtool/mapping/mapping.h"

namespace shardtool::mapping {

/// A warning for each axis that a document of one's own (not a preset) defines and that no rule,
/// size or group names. Haliax ignores such entries; here they are usually typos.
std::vector<std::string> unused_axes(const Mapping& mapping);

}  // namespace shardtool::mapping
