#pragma once

#include <vector>

#include "lib/api/inspect.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::api {

/// Returns one entry per rule of the layout, in the order of the tensors. `specs` are those that
/// the resolution's indices refer to.
std::vector<DrawnRule> drawn_rules(const mapping::Resolution& resolution,
                                   const std::vector<TensorSpec>& specs);

}  // namespace shardtool::api
