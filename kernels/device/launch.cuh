#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/device/launch.h"
#include "kernels/device/require.cuh"

/// For .cu files only.
namespace shardtool::kernels::gpu {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr i64 kMostBlocks = i64{1} << 20;  ///< above this, threads process several items
                                                  ///< each

/// Number of blocks for n threads.
inline unsigned blocks_of(i64 n) {
  return static_cast<unsigned>(std::min(ceil_div(n, kThreads), kMostBlocks));
}

__device__ inline i64 thread_index() {
  return i64{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline i64 thread_count() {
  return i64{gridDim.x} * blockDim.x;
}

template <class Work>
__global__ void items_of(const Work work) {
  for (i64 i = thread_index(); i < work.count(); i += thread_count()) work(i);
}

template <class Work>
void run(const Work& work, Stream stream) {
  const i64 n = work.count();
  if (n == 0) return;
  items_of<Work><<<blocks_of(n), kThreads, 0, stream>>>(work);
  require(cudaGetLastError(), "the launch of a kernel");
}

}  // namespace shardtool::kernels::gpu
