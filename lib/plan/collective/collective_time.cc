#include "lib/plan/collective/collective_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lib/plan/collective/units.h"

namespace shardtool::plan {
namespace {

/// Microseconds of LL, LL128 and Simple. NCCL src/graph/tuning.cc.
struct PerProtocol {
  double low_latency, low_latency128, simple;
  double of(Protocol protocol) const {
    switch (protocol) {
      case Protocol::kLowLatency:
        return low_latency;
      case Protocol::kLowLatency128:
        return low_latency128;
      case Protocol::kSimple:
        return simple;
    }
    return simple;
  }
};
constexpr PerProtocol kRingBase{6.6, 14.0, 8.4};
constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4};
constexpr PerProtocol kRingNvlink{0.6, 1.9, 3.4};
constexpr PerProtocol kTreeNvlink{0.6, 1.25, 4.0};
constexpr PerProtocol kRingPcie{1.0, 2.5, 5.7};
constexpr PerProtocol kTreePcie{1.0, 1.9, 4.0};
constexpr PerProtocol kRingNetwork{2.7, 4.0, 14.0};
constexpr PerProtocol kTreeNetwork{5.0, 8.5, 14.0};
constexpr double kInSwitchUs = 25;
constexpr double kLowLatency128Share = 0.92;  ///< 120 of 128 bytes are data, and some overhead
constexpr double kLowLatencyShare = 0.5;      ///< every second word is a flag
constexpr double kTreeShare = 0.5;            ///< each inner device receives twice
constexpr double kInSwitchShare = 5.0 / 6.0;

/// Measured: all_to_all reaches 0.78 to 0.88 of a ring's bandwidth on A100, H100 and B200.
constexpr double kPairwiseShare = 0.85;
/// Measured on L40S, 2.0 against 1.4 to 1.5 GB/s: over PCIe pairs do not wait for a ring's slowest.
constexpr double kPairwiseSharePcie = 1.3;

bool has_low_latency128(const Links& links) {
  return links.kind != Links::Kind::kPcie;
}

double device_count(i64 n) {
  return static_cast<double>(n);
}

/// Number of devices of a group on its fullest node.
i64 devices_per_node(const Group& group) {
  return ceil_div(group.devices, group.nodes);
}

/// Latency of `steps` moves around a ring of which `network_steps` cross nodes.
double ring_latency(const Links& links, Protocol protocol, i64 steps, i64 network_steps) {
  const PerProtocol& step = links.kind == Links::Kind::kPcie ? kRingPcie : kRingNvlink;
  return kRingBase.of(protocol) + device_count(steps - network_steps) * step.of(protocol) +
         device_count(network_steps) * kRingNetwork.of(protocol);
}

/// log2 of the nodes, rounded down.
double tree_depth(const Group& group) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(group.nodes)) - 1);
}

double tree_latency(const Links& links, Protocol protocol, const Group& group) {
  const PerProtocol& step = links.kind == Links::Kind::kPcie ? kTreePcie : kTreeNvlink;
  return kTreeBase.of(protocol) +
         2 * (device_count(devices_per_node(group) - 1) * step.of(protocol) +
              tree_depth(group) * kTreeNetwork.of(protocol));
}

/// Microseconds to gather S bytes at full bandwidth: the slower of the links inside a node and of
/// the adapters of its devices.
double gather_us(double bytes, const Links& links, double network_gb_per_s, const Group& group) {
  const i64 inside = devices_per_node(group);
  return gather_seconds(bytes, {{inside, links.ring_gb_per_s * 1e9},
                                {group.nodes, device_count(inside) * network_gb_per_s * 1e9}}) *
         kUsPerSecond;
}

/// Time with a protocol, given the time of Simple for the bytes.
double with_protocol(double simple_us, double wire_bytes, const Links& links, Protocol protocol) {
  if (protocol == Protocol::kSimple) return simple_us;
  if (protocol == Protocol::kLowLatency128) return simple_us / kLowLatency128Share;
  return std::max(simple_us / kLowLatencyShare,
                  wire_bytes / (links.low_latency_gb_per_s * kBytesPerUsOfGb));
}

double ring_us(const Collective& c, const Links& links, double network, Protocol protocol) {
  const bool all_reduce = c.op == CollectiveOp::kAllReduce;
  const bool rooted = c.op == CollectiveOp::kBroadcast || c.op == CollectiveOp::kReduce;
  const i64 rounds = all_reduce ? 2 : 1;
  const double bytes = static_cast<double>(c.payload_bytes);
  double simple = static_cast<double>(rounds) * gather_us(bytes, links, network, c.group);
  // A pipeline around the ring: every link carries the whole payload, not all but one part.
  if (rooted) simple *= device_count(c.group.devices) / device_count(c.group.devices - 1);
  const double wire = bytes * bus_factor(c.op, c.group.devices);
  return ring_latency(links, protocol, rounds * (c.group.devices - 1),
                      rounds * (c.group.nodes - 1)) +
         with_protocol(simple, wire, links, protocol);
}

double tree_us(const Collective& c, const Links& links, double network, Protocol protocol) {
  const i64 inside = devices_per_node(c.group);
  double gb_per_s = links.ring_gb_per_s;
  if (c.group.nodes > 1) gb_per_s = std::min(gb_per_s, device_count(inside) * network);
  const double bytes = static_cast<double>(c.payload_bytes);
  const double simple = bytes / (kTreeShare * gb_per_s * kBytesPerUsOfGb);
  return tree_latency(links, protocol, c.group) + with_protocol(simple, bytes, links, protocol);
}

double in_switch_us(const Collective& c, const Links& links, double network) {
  const double bytes = static_cast<double>(c.payload_bytes);
  const double inside = bytes / (kInSwitchShare * links.in_switch_gb_per_s * kBytesPerUsOfGb);
  const double gb_per_s = device_count(devices_per_node(c.group)) * network;
  const double across = 2 * gather_seconds(bytes, {{c.group.nodes, gb_per_s * 1e9}}) * kUsPerSecond;
  return kInSwitchUs + 2 * tree_depth(c.group) * kTreeNetwork.simple + std::max(inside, across);
}

/// Time of all pairs at once: traffic between nodes shares the device's adapter.
double pairwise_us(const Collective& c, const Links& links, double network, Protocol protocol) {
  const double n = device_count(c.group.devices);
  const double outside = n - device_count(devices_per_node(c.group));
  const bool permute = c.op == CollectiveOp::kPermute;
  const double bytes = static_cast<double>(c.payload_bytes);
  const double wire = bytes * bus_factor(c.op, c.group.devices);
  const double share = links.kind == Links::Kind::kPcie ? kPairwiseSharePcie : kPairwiseShare;
  const double ring_bytes_per_us = links.ring_gb_per_s * share * kBytesPerUsOfGb;
  const double sent_across =
      c.network_bytes ? static_cast<double>(*c.network_bytes) : bytes * (permute ? 1 : outside / n);
  const double across = c.group.nodes == 1 ? 0 : sent_across / (network * kBytesPerUsOfGb);
  return ring_latency(links, protocol, c.group.nodes, c.group.nodes - 1) +
         with_protocol(std::max(wire / ring_bytes_per_us, across), wire, links, protocol);
}

CollectiveTime least_on(const Collective& collective, const Links& links, double network) {
  CollectiveTime least;
  for (const Algorithm algorithm :
       {Algorithm::kRing, Algorithm::kTree, Algorithm::kInSwitch, Algorithm::kPairwise}) {
    for (const Protocol protocol :
         {Protocol::kLowLatency, Protocol::kLowLatency128, Protocol::kSimple}) {
      const auto us = time_with(collective, links, network, algorithm, protocol);
      if (!us || (least.algorithm != Algorithm::kNone && *us >= least.us)) continue;
      least = {*us, algorithm, protocol};
    }
  }
  return least;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"none", "ring", "tree", "in-switch", "pairwise", "torus", "measured"});
  return kNames[static_cast<size_t>(algorithm)];
}

std::optional<double> time_with(const Collective& c, const Links& links, double network,
                                Algorithm algorithm, Protocol protocol) {
  const bool pairwise = c.op == CollectiveOp::kAllToAll || c.op == CollectiveOp::kPermute;
  if (protocol == Protocol::kLowLatency128 && !has_low_latency128(links)) return std::nullopt;
  if (pairwise != (algorithm == Algorithm::kPairwise)) return std::nullopt;
  switch (algorithm) {
    case Algorithm::kRing:
      return ring_us(c, links, network, protocol);
    case Algorithm::kPairwise:
      if (protocol == Protocol::kLowLatency128) return std::nullopt;
      return pairwise_us(c, links, network, protocol);
    case Algorithm::kTree:
      if (c.op != CollectiveOp::kAllReduce) return std::nullopt;
      return tree_us(c, links, network, protocol);
    case Algorithm::kInSwitch:
      if (c.op != CollectiveOp::kAllReduce || links.in_switch_gb_per_s <= 0) return std::nullopt;
      if (protocol != Protocol::kSimple || devices_per_node(c.group) < 2) return std::nullopt;
      return in_switch_us(c, links, network);
    case Algorithm::kNone:
    case Algorithm::kTorus:
    case Algorithm::kMeasured:
      return std::nullopt;
  }
  return std::nullopt;
}

double time_on(const Collective& c, const Torus& torus, i64 torus_axes) {
  const i64 n = c.group.devices;
  if (n < 2) return 0;
  const bool ring = n >= torus.wraps_from;
  const double share = device_count(n - 1) / device_count(n);
  const double one_way = torus.link_gb_per_s * kBytesPerUsOfGb * device_count(torus_axes);
  const double bytes = static_cast<double>(c.payload_bytes);
  const double gathered = c.op == CollectiveOp::kAllToAll ? bytes * device_count(n) : bytes;
  double us = ring ? gathered / (2 * one_way) : gathered * share / one_way;
  // Half of a gather's bytes stop halfway on a line, a quarter in both directions around a ring.
  if (c.op == CollectiveOp::kAllToAll) us *= ring ? 0.25 : 0.5;
  if (c.op == CollectiveOp::kPermute) us = bytes / one_way;
  const double hops = device_count(ring ? ceil_div(n, 2) : n - 1);
  const double one_round = std::max(us, hops * torus.hop_us);
  return c.op == CollectiveOp::kAllReduce ? 2 * one_round : one_round;
}

double time_of_messages(const Collective& c, const Messages& messages) {
  const i64 n = c.group.devices;
  if (n < 2) return 0;
  const bool all_reduce = c.op == CollectiveOp::kAllReduce;
  const double steps =
      c.op == CollectiveOp::kPermute ? 1 : device_count((all_reduce ? 2 : 1) * (n - 1));
  return steps * messages.latency_us + static_cast<double>(c.payload_bytes) * bus_factor(c.op, n) /
                                           (messages.gb_per_s * kBytesPerUsOfGb);
}

double gather_seconds(double bytes, std::initializer_list<Level> levels) {
  double slowest = 0;
  for (const Level& level : levels) {
    const double fan_out = device_count(level.fan_out);
    slowest = std::max(slowest, (fan_out - 1) / (fan_out * level.bytes_per_s));
  }
  return bytes * slowest;
}

CollectiveTime time_of(const Collective& collective, const HardwareProfile& profile) {
  if (collective.group.devices < 2) return {};
  for (const Timing& timing : profile.timings) {
    const Group group{timing.devices, timing.nodes};
    if (timing.op != collective.op || group != collective.group) continue;
    return {us_at(timing.us_of_bytes, collective.payload_bytes), Algorithm::kMeasured};
  }
  if (const auto* torus = std::get_if<Torus>(&profile.fabric)) {
    return {time_on(collective, *torus, 1), Algorithm::kTorus};
  }
  if (const auto* messages = std::get_if<Messages>(&profile.fabric)) {
    return {time_of_messages(collective, *messages), Algorithm::kRing};
  }
  return least_on(collective, std::get<Links>(profile.fabric), profile.network_gb_per_s);
}

double two_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double exponent = std::floor(std::log10(std::abs(value))) - 1;
  // Powers of ten with a positive exponent are exact, and so is the division by one.
  const double unit = std::pow(10.0, std::abs(exponent));
  return exponent < 0 ? std::round(value * unit) / unit : std::round(value / unit) * unit;
}

std::string format_modelled_us(double us) {
  const double rounded = two_digits(us);
  const auto in = [rounded](double unit, std::string_view name) {
    const double value = rounded / unit;
    return value < 9.95 ? fmt::format("{:.1f} {}", value, name)
                        : fmt::format("{:.0f} {}", value, name);
  };
  if (rounded < 1e3) return in(1, "us");
  if (rounded < 1e6) return in(1e3, "ms");
  return in(1e6, "s");
}

}  // namespace shardtool::plan
