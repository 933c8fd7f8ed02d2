#include "lib/plan/collective/one_shot.h"

#include <variant>

#include "lib/plan/collective/collective_time.h"
#include "lib/plan/collective/units.h"

namespace shardtool::plan {
namespace {

/// Fraction of the links' peak. Least absolute errors gave 1 / 1.77 for TensorRT-LLM and 1 / 2.1
/// for vLLM, with the latency of a ring of NCCL's low-latency protocol, which then fitted as it is
/// (factors 0.83 and 1.02): Llama-3.1 70B, Qwen3-32B and MoE models, seen groups of
/// tests/costs/README.md.
constexpr double kOneShotShare = 0.55;

}  // namespace

double us_in_step(const Collective& collective, const HardwareProfile& profile) {
  const auto* links = std::get_if<Links>(&profile.fabric);
  const Group& group = collective.group;
  if (collective.op != CollectiveOp::kAllReduce || links == nullptr ||
      links->kind != Links::Kind::kNvlink || group.nodes > 1 || group.devices < 2 ||
      collective.payload_bytes > kMostOneShotBytes) {
    return time_of(collective, profile).us;
  }
  const Collective empty{collective.op, group, 0};
  const auto latency =
      time_with(empty, *links, profile.network_gb_per_s, Algorithm::kRing, Protocol::kLowLatency);
  const double bytes =
      static_cast<double>(group.devices - 1) * static_cast<double>(collective.payload_bytes);
  return latency.value_or(0) + bytes / (kOneShotShare * links->peak_gb_per_s * kBytesPerUsOfGb);
}

}  // namespace shardtool::plan
