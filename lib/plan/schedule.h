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

/// Memory of a device while equal tensors move one by one, in bytes. Between the first and the last
/// one the level changes evenly.
struct MemoryLevel {
  i64 first = 0;  ///< while the first one moves
  i64 last = 0;   ///< while the last one moves
  i64 after = 0;  ///< when all have moved
};

/// Levels of the device when the steps run in this order, which begins at the sum of all sources.
std::vector<MemoryLevel> levels_of(std::span<const MemoryStep> steps,
                                   std::span<const size_t> order);

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
  size_t busiest = 0;           ///< the first device that has it
  /// Lower bound for any order: the largest of any device's sources or destinations.
  i64 bound = 0;
};

/// Schedules steps[device][step], with the same number of steps for every device. Tries the best
/// order of the device with the highest peak, a few times, and keeps the best: optimal for one
/// device, good for many.
Schedule schedule(const std::vector<std::vector<MemoryStep>>& steps);

}  // namespace shardtool::plan
