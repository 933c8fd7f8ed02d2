#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// What moving some tensors, one after the other, does to one device's memory; bytes per tensor.
struct Step {
  i64 source = 0;       ///< freed afterwards
  i64 destination = 0;  ///< stays afterwards
  i64 extra = 0;        ///< allocated while the source is still there; 0 when nothing changes
  i64 tensors = 1;      ///< that are alike

  i64 growth() const { return destination - source; }
};

/// The most that the device holds when the steps are done in this order: what is not freed yet,
/// what is done, and the extra of the step at hand.
i64 peak_bytes(std::span<const Step> steps, std::span<const size_t> order);

/// The order with the lowest peak: first the steps that do not grow, by ascending extra, then the
/// others, by descending extra - growth.
std::vector<size_t> best_order(std::span<const Step> steps);

/// One order for all devices.
struct Schedule {
  std::vector<size_t> order;
  std::vector<i64> peak_bytes;  ///< per device
  i64 peak = 0;                 ///< the largest of them
  /// No order can go below: the largest of any device's sources, destinations or single step.
  i64 bound = 0;
};

/// steps[device][step], equally many for every device. Tries the best order of whichever device has
/// the highest peak, a few times, and keeps the best: optimal for one device, good for many.
Schedule schedule(const std::vector<std::vector<Step>>& steps);

}  // namespace shardtool::plan
