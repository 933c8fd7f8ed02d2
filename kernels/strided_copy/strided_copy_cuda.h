#pragma once

#include <cstddef>

#include "kernels/device/device.h"
#include "lib/index/strided_copy.h"

namespace shardtool::kernels::gpu {

/// strided_copy (strided_copy.h) between buffers of the device; returns before it is done. Throws
/// kLimit where the copy has more than kMostCopyLoops loops, kDeviceFailed where the launch fails.
void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst,
                  Stream stream);

}  // namespace shardtool::kernels::gpu
