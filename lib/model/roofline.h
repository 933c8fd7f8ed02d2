#pragma once

#include <string_view>

#include "lib/ops/pricing.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::model {

using ops::Amounts;

/// A lower bound of the time: every part at its rate, one after the other where they must be.
///     step = comm + launches + cache / bandwidth + max(flops / rate, weights / bandwidth)
struct Roofline {
  enum class Bound { kCompute, kMemory, kComm, kLaunch };
  double compute_us = 0;
  double memory_us = 0;  ///< weights and cache
  double comm_us = 0;
  double launch_us = 0;  ///< of all ops together
  double step_us = 0;
  Bound bound = Bound::kMemory;                           ///< the largest of the four
  plan::Arithmetic arithmetic = plan::Arithmetic::kBf16;  ///< of most of the compute
};
std::string_view to_string(Roofline::Bound bound);

/// On the profile, with its efficiencies; comm_us is added as it is.
Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us);

}  // namespace shardtool::model
