#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/resolve/assignment.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::mapping {

/// The "tied" groups of all documents: the names that are resolved, where those are two or more.
/// `resolved` is parallel to the specs; a dropped tensor has no layout. Throws kTied when two of a
/// group differ in shape, or in what some device holds.
std::vector<std::vector<std::string>> tied_groups(const Mapping& mapping,
                                                  std::span<const TensorSpec> tensors,
                                                  const TensorIndex& by_name,
                                                  const std::vector<ResolvedTensor>& resolved);

}  // namespace shardtool::mapping
