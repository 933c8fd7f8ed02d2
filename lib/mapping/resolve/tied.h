#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/match/assignment.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// Returns the "tied" groups of all documents, reduced to present names, if at least two are
/// present. `resolved` is parallel to the specs; a dropped tensor has no layout. Throws kTied if
/// two tensors of a group differ in shape, or in the region that some device holds.
std::vector<std::vector<std::string>> tied_groups(const Mapping& mapping,
                                                  std::span<const TensorSpec> tensors,
                                                  const TensorIndex& by_name,
                                                  const std::vector<ResolvedTensor>& resolved);

}  // namespace shardtool::mapping
