#pragma once

#include <string>
#include <vector>

#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mapping/resolve/rule_matcher.h"

namespace shardtool::mapping {

/// A warning for each axis that a document of one's own (not a preset) defines and that no rule,
/// size or group names. Haliax ignores such entries; here they are usually typos.
std::vector<std::string> unused_axes(const Mapping& mapping);

/// A warning for each axis of the mesh along which no tensor is cut. A mesh in a mapping says so on
/// purpose (replicas); one from the command line may have the wrong name, and every device would
/// silently get everything.
std::vector<std::string> idle_mesh_axes(const Mapping& mapping, const Resolution& resolution);

/// A warning for each axis of numbers below other numbers in names (the experts in their layers)
/// whose size config.json gives, but that no rule with a tensor names: the config is that of
/// another model. (Whole kinds of layers may be absent, such as the decoder of an encoder.)
std::vector<std::string> axes_without_tensors(const RuleMatcher& rules, AxisTable& axes);

}  // namespace shardtool::mapping
