#pragma once

#include "kernels/compare/compare.h"
#include "kernels/device/device.h"

namespace shardtool::kernels::gpu {

/// Joins the mismatches of the rows to *found; both are in device memory. The result does not
/// depend on the order of threads. T is Field, double or float. Asynchronous; throws kDeviceFailed
/// if the launch fails.
template <class T>
void compare(const CompareRows<T>& rows, Disagreement* found, Stream stream);

}  // namespace shardtool::kernels::gpu
