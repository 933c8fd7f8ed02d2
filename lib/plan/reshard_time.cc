#include "lib/plan/reshard_time.h"

#include <algorithm>
#include <map>

#include "lib/plan/collective/collective_time.h"
#include "lib/plan/collective/units.h"

namespace shardtool::plan {
namespace {

/// Rate from a device to those of its own node, per direction.
double peer_bytes_per_us(const HardwareProfile& profile) {
  struct Rate {
    double operator()(const Links& links) const { return links.ring_gb_per_s; }
    double operator()(const Torus& torus) const {
      return torus.link_gb_per_s * static_cast<double>(torus.axes);
    }
    double operator()(const Messages& messages) const { return messages.gb_per_s; }
  };
  return std::visit(Rate{}, profile.fabric) * kBytesPerUsOfGb;
}

/// Time of a nearly empty message.
double latency_us(bool is_far, const HardwareProfile& profile) {
  return time_of({CollectiveOp::kPermute, {2, is_far ? 2 : 1}, 1}, profile).us;
}

double network_us(const ReshardPlan& plan, const HardwareProfile& profile) {
  const double near = peer_bytes_per_us(profile);
  const double far = profile.network_gb_per_s * 1e3;
  double slowest = 0;
  for (const RankLoad& rank : plan.per_rank) {
    const double by_adapter = static_cast<double>(std::max(rank.send_far, rank.receive_far)) / far;
    const double by_links =
        static_cast<double>(std::max(rank.send - rank.send_far, rank.receive - rank.receive_far)) /
        near;
    slowest = std::max({slowest, by_adapter, by_links});
  }
  return latency_us(plan.between_nodes_bytes > 0, profile) + slowest;
}

/// Fixed time of a request: its time beyond its bytes at the rate of the largest.
double us_per_request(const TimeTable& table) {
  const auto& [bytes, us] = table.front();
  return std::max(0.0, us - static_cast<double>(bytes) / bytes_per_s(table) * kUsPerSecond);
}

/// Time at the rate of the largest requests.
double us_of_all(i64 bytes, const TimeTable& table) {
  return static_cast<double>(bytes) / bytes_per_s(table) * kUsPerSecond;
}

double us_of(const Reads& reads, const TimeTable& table) {
  return static_cast<double>(reads.requests) * us_per_request(table) +
         us_of_all(reads.bytes, table);
}

double load_us(const ReshardPlan& plan, const TimeTable& table, i64 node_size) {
  std::map<i64, Reads> nodes;
  for (const RankLoad& rank : plan.per_rank) nodes[rank.rank / node_size] += rank.load;
  double slowest = 0;
  for (const auto& [node, reads] : nodes) slowest = std::max(slowest, us_of(reads, table));
  return slowest;
}

}  // namespace

std::optional<double> ReshardTime::files_us() const {
  return read_us ? std::optional(std::max(*read_us, *write_us)) : std::nullopt;
}

i64 cheapest_gap(const Storage& storage) {
  const TimeTable& table = storage.read_us_of_bytes;
  return static_cast<i64>(us_per_request(table) / kUsPerSecond * bytes_per_s(table));
}

ReshardTime time_of(const ReshardPlan& plan, const HardwareProfile& profile, i64 node_size) {
  ReshardTime time;
  if (plan.changes == 0) return time;
  if (!plan.from_storage) time.network_us = network_us(plan, profile);
  if (!profile.storage) return time;
  const Storage& storage = *profile.storage;
  if (plan.from_storage) time.load_us = load_us(plan, storage.read_us_of_bytes, node_size);
  // Whole rows are read in large blocks and distributed in memory, regardless of the devices' runs.
  time.read_us = us_of_all(plan.wanted_once, storage.read_us_of_bytes);
  time.write_us = us_of_all(plan.bytes_total, storage.write_us_of_bytes);
  return time;
}

}  // namespace shardtool::plan
