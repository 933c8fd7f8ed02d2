#pragma once

#include <cuda_runtime_api.h>

namespace shardtool::kernels::gpu {

/// Throws kDeviceFailed, with the call and what CUDA says, unless it succeeded. For code that is
/// compiled with CUDA alone.
void require(cudaError_t result, const char* call);

}  // namespace shardtool::kernels::gpu
