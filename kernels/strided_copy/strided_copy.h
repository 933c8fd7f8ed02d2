#pragma once

#include <cstddef>

#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// Performs the copy: for every index tuple over the loops, `run` bytes move from src to dst.
/// The caller guarantees that both buffers hold every addressed byte and do not overlap.
void strided_copy(const index::StridedCopy& copy, const std::byte* src, std::byte* dst);

}  // namespace shardtool::kernels
