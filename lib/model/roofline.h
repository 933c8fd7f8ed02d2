#pragma once

#include <array>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::model {

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

/// What one device does in a pass through all layers, the busiest one of each op.
struct Amounts {
  /// By the kind of numbers: that of the weights, bf16 for what multiplies activations.
  std::array<double, plan::kArithmetics.size()> flops{};
  double weight_bytes = 0;  ///< read; of experts those that some token chose, on average
  double cache_bytes = 0;   ///< read
  /// Products (those of one value are one), attentions, experts, norms and look-ups; what is done
  /// element by element is taken to be part of them.
  i64 launches = 0;

  double all_flops() const;
};
/// On the profile, with its efficiencies; comm_us is added as it is.
Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us);

}  // namespace shardtool::model
