#include <cuda_runtime_api.h>

#include "shardtool/base/error.h"
#include "shardtool/kernels/device/device.h"
#include "shardtool/kernels/device/require.h"

namespace shardtool::kernels {

DeviceState device_state() {
  DeviceState state{SHARDTOOL_CUDA_ARCH, 0, ""};
  const cudaError_t result = cudaGetDeviceCount(&state.count);
  if (result != cudaSuccess) {
    state.count = 0;
    state.reason = cudaGetErrorString(result);
    // Of no driver at all CUDA says that it is too old.
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) state.reason += " (no driver)";
  } else if (state.count == 0) {
    state.reason = "the driver has no device";
  }
  return state;
}

namespace gpu {

void require(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw Error(ErrorCode::kPeerLost, std::string("the GPU failed: ") + cudaGetErrorString(result))
      .note("call", call)
      .help("see what it says to 'shardtool doctor'; without GPU, run on the CPU");
}

void wait_for(Stream stream) {
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

DeviceMemory::DeviceMemory(size_t bytes) : size_(bytes) {
  void* data = nullptr;
  if (bytes > 0) require(cudaMalloc(&data, bytes), "cudaMalloc");
  bytes_ = static_cast<std::byte*>(data);
}

DeviceMemory::~DeviceMemory() {
  cudaFree(bytes_);
}

void DeviceMemory::upload(const void* from) {
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  require(cudaMemcpy(bytes_, from, size_, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceMemory::download(void* to) const {
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  require(cudaMemcpy(to, bytes_, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

}  // namespace gpu
}  // namespace shardtool::kernels
