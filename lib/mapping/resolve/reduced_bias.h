#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/resolve/value_shifts.h"

namespace shardtool::mapping {

/// Placement of a bias that is added once to a sum over devices.
struct BiasDecision {
  std::shared_ptr<const layout::Layout> layout;
  std::vector<index::ValueShift> shifts;  ///< per device of the layout; empty: values are unchanged
  /// "after_reduction", "first_device", "divided" or kFirstAndZeros.
  std::string convention;
};

/// Applies the policy over the mesh axis tp, or over the only axis. Throws kStrategy if there is no
/// such axis. kDivide also throws it if the size of the axis is not a power of two, since the
/// quotients would not be exact.
BiasDecision decide_reduced_bias(ReducedBias policy, std::shared_ptr<const layout::Layout> layout);

/// Gives the bias to the first devices along the mesh axis tp, and zeros to the others. Where tp is
/// of one device, or cuts the bias, all keep their part.
BiasDecision first_and_zeros(std::shared_ptr<const layout::Layout> layout);

}  // namespace shardtool::mapping
