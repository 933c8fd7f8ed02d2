#pragma once

#include <memory>
#include <vector>

#include "kernels/device/device_memory.h"

namespace shardtool::engine {

/// Memory of the accelerators of this process; empty: it computes on the CPU. Rank r computes on
/// number r modulo their count, the whole model on the first.
using Memories = std::vector<std::shared_ptr<kernels::DeviceMemory>>;

inline std::shared_ptr<kernels::DeviceMemory> first_of(const Memories& memories) {
  return memories.empty() ? nullptr : memories.front();
}

}  // namespace shardtool::engine
