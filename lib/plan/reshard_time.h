#pragma once

#include <optional>

#include "lib/plan/collective/hardware_profile.h"
#include "lib/plan/reshard.h"

namespace shardtool::plan {

/// Lower bound of a reshard's time on a profile, in microseconds: moved bytes at full rates, the
/// maximum of concurrent parts.
struct ReshardTime {
  /// Transfer time between devices: the busiest device's bytes to and from other nodes through its
  /// adapter, the others through its links. Nullopt from storage.
  std::optional<double> network_us;
  /// Time to load from storage: the node that reads most, each device for itself.
  std::optional<double> load_us;
  /// Times through the files of one node, as in `shardtool reshard`: the source read once, every
  /// device's part written. Nullopt without the storage in the profile.
  std::optional<double> read_us;
  std::optional<double> write_us;

  /// Total time through files.
  std::optional<double> files_us() const;
};

/// Stated error of these times. Twelve splits, merges and reshards of 1.5 and 3.2 GB took 0.78 to
/// 1.12 times the modelled time of their files, after `plan profile calibrate` on the same machine
/// (tests/bench/reshard_time_bench); transfers between devices were not measured.
inline constexpr double kReshardErrorBand = 0.5;

/// Bytes read in a request's fixed time: smaller gaps are cheaper to read than to skip.
i64 cheapest_gap(const Storage& storage);

/// All times are nullopt for a plan without moves. Nodes are ranges of `node_size` devices.
ReshardTime time_of(const ReshardPlan& plan, const HardwareProfile& profile, i64 node_size);

}  // namespace shardtool::plan
