#pragma once

#include "kernels/device/block.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/team.cuh"

/// For .cu files only.
namespace shardtool::kernels::gpu {

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
  if constexpr (TeamWork<Work>) {
    run_teams(work, stream);
  } else {
    launch("the launch of a kernel", items_of<Work>, blocks_of(n), kThreads, stream, work);
  }
}

}  // namespace shardtool::kernels::gpu
