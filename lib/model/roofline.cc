#include "lib/model/roofline.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardtool::model {

std::string_view to_string(Roofline::Bound bound) {
  constexpr auto kNames = std::to_array<std::string_view>({"compute", "memory", "comm", "launch"});
  return kNames[static_cast<size_t>(bound)];
}

namespace {

/// Time of products with weights of less than 8 bits, as a multiple of that of as many bytes and
/// flops: kernels unpack them, or quantise activations. Least absolute errors gave 1.51 for
/// Llama-3.1 70B in NVFP4 on B200, and 1.45 for experts in 4 bits on devices that do not multiply
/// these; experts in fp4 on B200 needed none (seen groups of tests/costs/README.md). Those were
/// decode steps, which read. Prompts, which multiply, want the same of 1.25, 1.5, 1.75 and 2.
constexpr double kNarrowTime = 1.5;

double unpacked_bytes(const Amounts& amounts, const plan::HardwareProfile& profile) {
  const bool multiplies = profile.rates.has(plan::Arithmetic::kFp4);
  return amounts.narrow_bytes + (multiplies ? 0 : amounts.fp4_expert_bytes);
}

double unpacked_flops(const Amounts& amounts, const plan::HardwareProfile& profile,
                      plan::Arithmetic kind) {
  const auto k = static_cast<size_t>(kind);
  return amounts.narrow_flops[k] + (profile.rates.has(kind) ? 0 : amounts.fp4_expert_flops[k]);
}

}  // namespace

Roofline roofline(const Amounts& amounts, const plan::HardwareProfile& profile, double comm_us) {
  Roofline roof;
  const double bytes_per_us = profile.memory_gb_per_s * 1e3 * profile.memory_efficiency;
  const double bytes = amounts.weight_bytes + (kNarrowTime - 1) * unpacked_bytes(amounts, profile);
  const double weights_us = bytes / bytes_per_us;
  const double values_us = (amounts.cache_bytes + amounts.activation_bytes) / bytes_per_us;
  double most_us = 0;
  for (const plan::Arithmetic kind : plan::kArithmetics) {
    const double flops_per_us = profile.rates.tflops(kind) * 1e6 * profile.compute_efficiency;
    const double flops = amounts.flops[static_cast<size_t>(kind)] +
                         (kNarrowTime - 1) * unpacked_flops(amounts, profile, kind);
    const double us = flops / flops_per_us;
    roof.compute_us += us;
    if (us <= most_us) continue;
    most_us = us;
    roof.arithmetic = profile.rates.has(kind) ? kind : plan::Arithmetic::kBf16;
  }
  roof.memory_us = weights_us + values_us;
  roof.comm_us = comm_us;
  roof.launch_us = static_cast<double>(amounts.launches) * profile.launch_us;
  roof.step_us = comm_us + roof.launch_us + values_us + std::max(roof.compute_us, weights_us);
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
