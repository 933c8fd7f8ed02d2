#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Memory effect on one device of moving some tensors one by one; bytes per tensor.
struct MemoryStep {
  i64 source = 0;       ///< freed after the move
  i64 destination = 0;  ///< kept after the move
  i64 extra = 0;        ///< allocated while the source still exists; 0 if unchanged
  i64 tensors = 1;      ///< number of equal tensors

  i64 growth() const { return destination - source; }
};

/// Peak memory of the device when the steps run in this order: sources not yet freed, finished
/// destinations, and the extra of the current step.
i64 peak_bytes(std::span<const MemoryStep> steps, std::span<const size_t> order);

/// Order with the lowest peak: first the steps that do not grow, by ascending extra, then the
/// others, by descending extra - growth.
std::vector<size_t> best_order(std::span<const MemoryStep> steps);

/// One order for all devices.
struct Schedule {
  std::vector<size_t> order;
  std::vector<i64> peak_bytes;  ///< per device
  i64 peak = 0;                 ///< the largest of them
  /// Lower bound for any order: the largest of any device's sources or destinations.
  i64 bound = 0;
};

/// Schedules steps[device][step], with the same number of steps for every device. Tries the best
/// order of the device with the highest peak, a few times, and keeps the best: optimal for one
/// device, good for many.
Schedule schedule(const std::vector<std::vector<MemoryStep>>& steps);

}  // namespace shardtool::plan
