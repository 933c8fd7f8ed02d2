#include "lib/plan/schedule.h"

#include <algorithm>
#include <numeric>

namespace shardtool::plan {
namespace {

std::vector<i64> peaks(const std::vector<std::vector<MemoryStep>>& steps,
                       std::span<const size_t> order) {
  std::vector<i64> peaks;
  peaks.reserve(steps.size());
  for (const auto& device : steps) peaks.push_back(peak_bytes(device, order));
  return peaks;
}

/// Returns the memory before the first step.
i64 begin_of(std::span<const MemoryStep> steps) {
  i64 resident = 0;
  for (const MemoryStep& step : steps) resident += step.source * step.tensors;
  return resident;
}

i64 bound_of(std::span<const MemoryStep> steps) {
  i64 before = 0;
  i64 after = 0;
  for (const MemoryStep& step : steps) {
    before += step.source * step.tensors;
    after += step.destination * step.tensors;
  }
  return std::max(before, after);
}

}  // namespace

std::vector<MemoryLevel> levels_of(std::span<const MemoryStep> steps,
                                   std::span<const size_t> order) {
  i64 resident = begin_of(steps);
  std::vector<MemoryLevel> levels;
  levels.reserve(order.size());
  for (const size_t i : order) {
    const MemoryStep& step = steps[i];
    const i64 before_last = resident + (step.tensors - 1) * step.growth();
    const i64 first = resident + step.extra;
    resident += step.tensors * step.growth();
    levels.push_back({first, before_last + step.extra, resident});
  }
  return levels;
}

i64 peak_bytes(std::span<const MemoryStep> steps, std::span<const size_t> order) {
  i64 peak = begin_of(steps);
  for (const MemoryLevel& level : levels_of(steps, order))
    peak = std::max({peak, level.first, level.last, level.after});
  return peak;
}

std::vector<size_t> best_order(std::span<const MemoryStep> steps) {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const MemoryStep& x = steps[a];
    const MemoryStep& y = steps[b];
    const bool x_grows = x.growth() > 0;
    const bool y_grows = y.growth() > 0;
    if (x_grows != y_grows) return y_grows;
    return x_grows ? x.extra - x.growth() > y.extra - y.growth() : x.extra < y.extra;
  });
  return order;
}

Schedule schedule(const std::vector<std::vector<MemoryStep>>& steps) {
  constexpr int kTries = 4;
  Schedule best;
  if (steps.empty()) return best;
  size_t busiest = 0;
  for (size_t device = 0; device < steps.size(); ++device) {
    const i64 bound = bound_of(steps[device]);
    if (bound > best.bound) busiest = device;
    best.bound = std::max(best.bound, bound);
  }
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::vector<size_t> order = best_order(steps[busiest]);
    std::vector<i64> device_peaks = peaks(steps, order);
    const auto highest = std::max_element(device_peaks.begin(), device_peaks.end());
    const auto device = static_cast<size_t>(highest - device_peaks.begin());
    if (attempt == 0 || *highest < best.peak) {
      best.peak = *highest;
      best.busiest = device;
      best.order = std::move(order);
      best.peak_bytes = std::move(device_peaks);
    }
    if (device == busiest) break;
    busiest = device;
  }
  return best;
}

}  // namespace shardtool::plan
