#pragma once

#include <cstddef>

#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// For every index tuple over the loops, copies `run` bytes from src to dst. Requires: both buffers
/// hold every addressed byte and do not overlap.
void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst);

}  // namespace shardtool::kernels
