#pragma once

#include <cstddef>

#include "kernels/device/device.h"
#include "lib/index/strided_copy.h"

namespace shardtool::kernels::gpu {

/// strided_copy (strided_copy.h) between device buffers. Asynchronous. Throws kLimit if the copy
/// has more than kMostCopyLoops loops, kDeviceFailed if the launch fails.
void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst,
                  Stream stream);

}  // namespace shardtool::kernels::gpu
