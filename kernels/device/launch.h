#pragma once

#include "shardtool/base/checked.h"
#include "shardtool/kernels/device/device.h"

namespace shardtool::kernels {

/// A work is a value with
///
///     SHARDTOOL_BOTH i64 count() const;              how many items it has
///     SHARDTOOL_BOTH void operator()(i64 i) const;   does item i; items are independent
///
/// It holds pointers to what it reads and writes, so the same work runs on a host or on a GPU.
/// Every kernel whose items are independent is written so; its contract is the work's.
template <class Work>
void run_on_host(const Work& work) {
  for (i64 i = 0; i < work.count(); ++i) work(i);
}

namespace gpu {

/// Launches all items on the current device and returns. All pointers of the work are the device's.
/// Defined for the works that the .cu files name. Throws kEngineMissing where the launch fails.
template <class Work>
void run(const Work& work, Stream stream);

}  // namespace gpu
}  // namespace shardtool::kernels
