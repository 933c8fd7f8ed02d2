#pragma once

#include <string_view>

#include "lib/ops/amounts.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::model {

using ops::Amounts;

/// A lower bound of the time. Each part runs at its full rate; parts that depend on each other run
/// one after another.
///     step = comm + launches + (cache + activations) / bandwidth
///            + max(flops / rate, weights / bandwidth)
struct Roofline {
  enum class Bound { kCompute, kMemory, kComm, kLaunch };
  double compute_us = 0;
  double memory_us = 0;  ///< reading weights and cache, reading and writing activations
  double comm_us = 0;
  double launch_us = 0;  ///< launches of all ops
  double step_us = 0;
  Bound bound = Bound::kMemory;                           ///< the largest of the four
  plan::Arithmetic arithmetic = plan::Arithmetic::kBf16;  ///< that of most of the compute
};
std::string_view to_string(Roofline::Bound bound);

/// Computes the bound with the profile's rates and efficiencies. `comm_us` is added unchanged.
Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us);

}  // namespace shardtool::model
