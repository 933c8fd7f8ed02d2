#pragma once

#include <optional>

#include "lib/plan/collective/hardware_profile.h"
#include "lib/plan/reshard.h"

namespace shardtool::plan {

/// How long a reshard takes at least on a profile, in microseconds: what is moved at full rates,
/// the slower of what happens at the same time.
struct ReshardTime {
  /// Between devices: the busiest one's bytes to and from other nodes by its adapter, the others by
  /// its links. Nothing from storage.
  std::optional<double> network_us;
  /// From storage: the node that reads most, each device for itself.
  std::optional<double> load_us;
  /// Through the files of one node, as `shardtool reshard` does: the source read once, every
  /// device's part written. Nothing without the storage in the profile.
  std::optional<double> read_us;
  std::optional<double> write_us;

  /// Of the way through files.
  std::optional<double> files_us() const;
};

/// The stated error of these times. Twelve splits, merges and reshards of 1.5 and 3.2 GB took 0.78
/// to 1.12 times the modelled time of their files, after `plan profile calibrate` on the same
/// machine (tests/bench/reshard_time_bench); between devices nothing was measured.
inline constexpr double kReshardErrorBand = 0.5;

/// Bytes of a request's fixed time: gaps below it are cheaper to read than to skip.
i64 cheapest_gap(const Storage& storage);

/// Nothing of a plan that moves nothing. Nodes are runs of `node_size` devices.
ReshardTime time_of(const ReshardPlan& plan, const HardwareProfile& profile, i64 node_size);

}  // namespace shardtool::plan
