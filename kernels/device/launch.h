#pragma once

#include <atomic>

#include "kernels/device/device.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// A work is a value with
///
///     SHARDTOOL_BOTH i64 count() const;              how many items it has
///     SHARDTOOL_BOTH void operator()(i64 i) const;   does item i; items are independent
///
/// It holds pointers to what it reads and writes, so the same work runs on a host or on a GPU.
/// Every kernel whose items are independent is written so; its contract is the work's.
///
/// Items that have not begun when `cancel` is up are left out; null: never.
template <class Work>
void run_on_host(const Work& work, const std::atomic<bool>* cancel = nullptr) {
  for (i64 i = 0; i < work.count(); ++i) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return;
    work(i);
  }
}

namespace gpu {

/// Launches all items on the current device and returns. All pointers of the work are the device's.
/// Defined for the works that the .cu files name. Throws kDeviceFailed where the launch fails.
template <class Work>
void run(const Work& work, Stream stream);

}  // namespace gpu
}  // namespace shardtool::kernels
