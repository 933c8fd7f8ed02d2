#pragma once

#include "kernels/compare/compare.h"
#include "kernels/device/device.h"

namespace shardtool::kernels::gpu {

/// Joins what the rows, which are on the device, find to *found, which is there too. The same bits
/// whatever the order of threads: counts, least keys and largest distances have none. T is Field,
/// double or float. Returns before it is done; throws kDeviceFailed where the launch fails.
template <class T>
void compare(const CompareRows<T>& rows, Disagreement* found, Stream stream);

}  // namespace shardtool::kernels::gpu
