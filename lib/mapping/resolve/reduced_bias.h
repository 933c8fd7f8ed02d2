#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/resolve/value_shifts.h"

namespace shardtool::mapping {

/// What becomes of a bias that is added once to a sum over devices.
struct BiasDecision {
  std::shared_ptr<const layout::Layout> layout;
  std::vector<index::ValueShift> shifts;  ///< per device of the layout; empty: plain values
  std::string convention;                 ///< "after_reduction", "first_device" or "divided"
};

/// The policy over the mesh axis tp, or over the only axis. Throws kStrategy when there is no such
/// axis, and for kDivide when its size is no power of two: other quotients are not exact.
BiasDecision decide_reduced_bias(ReducedBias policy, std::shared_ptr<const layout::Layout> layout);

}  // namespace shardtool::mapping
