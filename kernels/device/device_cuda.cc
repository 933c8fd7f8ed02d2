#include <cuda_runtime_api.h>

#include "kernels/device/device.h"
#include "kernels/device/require.cuh"
#include "lib/base/error.h"

namespace shardtool::kernels {

DeviceState device_state() {
  DeviceState state{SHARDTOOL_CUDA_ARCH, 0, "", {}};
  const cudaError_t result = cudaGetDeviceCount(&state.count);
  if (result != cudaSuccess) {
    state.count = 0;
    state.reason = cudaGetErrorString(result);
    // CUDA reports a missing driver as too old.
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) state.reason += " (no driver)";
  } else if (state.count == 0) {
    state.reason = "the driver has no device";
  }
  for (int device = 0; device < state.count; ++device) {
    Capability& capability = state.capabilities.emplace_back();
    gpu::require(
        cudaDeviceGetAttribute(&capability.major, cudaDevAttrComputeCapabilityMajor, device),
        "cudaDeviceGetAttribute");
    gpu::require(
        cudaDeviceGetAttribute(&capability.minor, cudaDevAttrComputeCapabilityMinor, device),
        "cudaDeviceGetAttribute");
  }
  return state;
}

namespace gpu {

void require(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw device_failed(call, cudaGetErrorString(result));
}

}  // namespace gpu
}  // namespace shardtool::kernels
