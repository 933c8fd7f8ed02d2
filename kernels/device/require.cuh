#pragma once

#include <cuda_runtime_api.h>

namespace shardtool::kernels::gpu {

/// Throws kDeviceFailed with the call and CUDA's message unless `result` is success. Only for code
/// that always has CUDA.
void require(cudaError_t result, const char* call);

}  // namespace shardtool::kernels::gpu
