#include "lib/model/roofline.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardtool::model {

std::string_view to_string(Roofline::Bound bound) {
  constexpr auto kNames = std::to_array<std::string_view>({"compute", "memory", "comm", "launch"});
  return kNames[static_cast<size_t>(bound)];
}

Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us) {
  Roofline roof;
  const double bytes_per_us = profile.memory_gb_per_s * 1e3 * profile.memory_efficiency;
  const double weights_us = amounts.weight_bytes / bytes_per_us;
  const double cache_us = amounts.cache_bytes / bytes_per_us;
  double most_us = 0;
  for (const plan::Arithmetic kind : plan::kArithmetics) {
    const double flops_per_us = profile.rates.tflops(kind) * 1e6 * profile.compute_efficiency;
    const double us = amounts.flops[static_cast<size_t>(kind)] / flops_per_us;
    roof.compute_us += us;
    if (us <= most_us) continue;
    most_us = us;
    roof.arithmetic = profile.rates.has(kind) ? kind : plan::Arithmetic::kBf16;
  }
  roof.memory_us = weights_us + cache_us;
  roof.comm_us = comm_us;
  roof.launch_us = static_cast<double>(amounts.launches) * profile.launch_us;
  roof.step_us = comm_us + roof.launch_us + cache_us + std::max(roof.compute_us, weights_us);
  const std::array<std::pair<double, Roofline::Bound>, 4> parts{
      {{roof.memory_us, Roofline::Bound::kMemory},
       {roof.comm_us, Roofline::Bound::kComm},
       {roof.compute_us, Roofline::Bound::kCompute},
       {roof.launch_us, Roofline::Bound::kLaunch}}};
  roof.bound = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
                 return a.first < b.first;
               })->second;
  return roof;
}

}  // namespace shardtool::model
