#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lib/plan/collective/collective.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::plan {

/// Algorithm of a collective: one of NCCL's with a protocol; a torus' own; or a measurement of the
/// profile.
enum class Algorithm { kNone, kRing, kTree, kInSwitch, kPairwise, kTorus, kMeasured };
enum class Protocol { kSimple, kLowLatency, kLowLatency128 };
std::string_view to_string(Algorithm algorithm);

struct CollectiveTime {
  double us = 0;
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kSimple;
};

/// Error band of modelled times, as a fraction of the measured ones: the largest error against NCCL
/// on eight devices of one node over 512 B to 512 MiB.
inline constexpr double kTimeErrorBand = 0.4;

/// Time of one algorithm and protocol, with the structure of NCCL's tuning model:
///     latency + payload / bandwidth
/// Nullopt if NCCL lacks the combination: trees and switches only all-reduce, LL128 needs NVLink.
std::optional<double> time_with(const Collective& collective, const Links& links,
                                double network_gb_per_s, Algorithm algorithm, Protocol protocol);

/// Time on a torus axis, with S the payload and W both directions of a link: an all_gather takes S
/// / W on a ring and its (n - 1) / n at half the bandwidth on a line, at least a hop's time per
/// hop. `torus_axes` is the number of torus dimensions that the group uses.
double time_on(const Collective& collective, const Torus& torus, i64 torus_axes);

/// Time around a ring of processes, every step a message: steps * latency + wire bytes / bandwidth,
/// with 2 (n - 1) steps for all_reduce, 1 for permute, n - 1 for the others.
double time_of_messages(const Collective& collective, const Messages& messages);

/// Seconds that the slowest level of a tree of switches takes to gather `bytes`. Each level has
/// `fan_out` children that send at `bytes_per_s` each:
///     bytes * max over levels (fan_out - 1) / (fan_out * bytes_per_s)
struct Level {
  i64 fan_out = 1;
  double bytes_per_s = 0;
};
double gather_seconds(double bytes, std::initializer_list<Level> levels);

/// Time of the collective on the profile: the profile's measurement for this op and group if it has
/// one, else the minimum over algorithms and protocols. 0 for one device.
CollectiveTime time_of(const Collective& collective, const HardwareProfile& profile);

/// Formats as "19 us", "1.2 ms", "0.37 s": two significant digits, the model's precision.
std::string format_modelled_us(double us);
/// Rounds a number to two significant digits.
double two_digits(double value);

}  // namespace shardtool::plan
