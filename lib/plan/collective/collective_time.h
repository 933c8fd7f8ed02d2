#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lib/plan/collective/collective.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::plan {

/// How a collective is carried out, after NCCL: an algorithm with a protocol; a torus' own; or a
/// measurement of the profile.
enum class Algorithm { kNone, kRing, kTree, kInSwitch, kPairwise, kTorus, kMeasured };
enum class Protocol { kSimple, kLowLatency, kLowLatency128 };
std::string_view to_string(Algorithm algorithm);

struct CollectiveTime {
  double us = 0;
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kSimple;
};

/// Modelled times of collectives are within this fraction of the measured ones: the largest error
/// against NCCL on eight devices of one node over 512 B to 512 MiB.
inline constexpr double kTimeErrorBand = 0.4;

/// The time of one algorithm and protocol, the structure of NCCL's tuning model:
///     latency + payload / bandwidth
/// Nothing where NCCL has no such combination: trees and switches only reduce everywhere, LL128
/// needs NVLink.
std::optional<double> time_with(const Collective& collective, const Links& links,
                                double network_gb_per_s, Algorithm algorithm, Protocol protocol);

/// On a torus axis, S the payload and W both directions of a link: an all_gather takes S / W on a
/// ring and its (n - 1) / n at half the bandwidth on a line, at least a hop's time per hop.
/// `torus_axes` is the number of dimensions of the torus that the group lies along.
double time_on(const Collective& collective, const Torus& torus, i64 torus_axes);

/// Around a ring of processes, every step a message: steps * latency + wire bytes / bandwidth, with
/// 2 (n - 1) steps for all_reduce, 1 for permute, n - 1 for the others.
double time_of_messages(const Collective& collective, const Messages& messages);

/// The seconds that the slowest level of a tree of switches takes to gather `bytes`, each level
/// with `fan_out` children below it that send at `bytes_per_s` each:
///     bytes * max over levels (fan_out - 1) / (fan_out * bytes_per_s)
struct Level {
  i64 fan_out = 1;
  double bytes_per_s = 0;
};
double gather_seconds(double bytes, std::initializer_list<Level> levels);

/// The time of the collective on the profile: the measurement where the profile has one for this op
/// and group, else the least over algorithms and protocols. 0 for one device.
CollectiveTime time_of(const Collective& collective, const HardwareProfile& profile);

/// "19 us", "1.2 ms", "0.37 s": two significant digits, since no more are known.
std::string format_modelled_us(double us);
/// The number itself, rounded so.
double two_digits(double value);

}  // namespace shardtool::plan
