#pragma once

#include <atomic>

#include "kernels/device/device.h"
#include "kernels/device/team.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// A work is a value with
///
///     SHARDTOOL_BOTH i64 count() const;              number of items
///     SHARDTOOL_BOTH void operator()(i64 i) const;   computes item i; items are independent
///
/// It holds pointers to its inputs and outputs, so the same work runs on the host or on a GPU.
/// Every kernel with independent items is written this way. A work whose items are long has teams
/// (team.h) instead of one thread per item:
///
///     SHARDTOOL_BOTH int lanes() const;              lanes per team: 32 or 256
///     static constexpr int kBlocksAtOnce             if it needs many registers (team.cuh)
///     template <class Team>
///     SHARDTOOL_BOTH void operator()(i64 i, const Team& team) const;
template <class Work>
concept TeamWork = requires(const Work& work) {
  work.lanes();
};

/// Runs all items on the host; skips the rest once `cancel` is set. Null `cancel`: runs to the end.
template <class Work>
void run_on_host(const Work& work, const std::atomic<bool>* cancel = nullptr) {
  for (i64 i = 0; i < work.count(); ++i) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return;
    if constexpr (TeamWork<Work>) {
      work(i, HostTeam(work.lanes()));
    } else {
      work(i);
    }
  }
}

namespace gpu {

/// Launches all items on the current device and returns. The work's pointers are device pointers.
/// Instantiated in the .cu files. Throws kDeviceFailed if the launch fails.
template <class Work>
void run(const Work& work, Stream stream);

}  // namespace gpu
}  // namespace shardtool::kernels
