#pragma once

#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/team.h"
#include "kernels/field/field.h"
#include "lib/base/checked.h"

/// The namespace of kernels. The host's copies have another one, or the linker would take one for
/// both.
#ifdef __CUDACC__
#define SHARDTOOL_GPU gpu
#else
#define SHARDTOOL_GPU gpu_on_host
#endif

/// Unrolls the loop that follows, n times or wholly, where nvcc compiles it.
#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "kernels/device/require.cuh"
#define SHARDTOOL_PRAGMA(words) _Pragma(#words)
#define SHARDTOOL_UNROLL(n) SHARDTOOL_PRAGMA(unroll n)
#else
#define SHARDTOOL_UNROLL(n)
#endif

/// Kernels whose threads work together. For .cu files, and for tests, which include
/// tests/kernels/threads/block_on_host.h before: it declares what CUDA declares here, and launch().
namespace shardtool::kernels::SHARDTOOL_GPU {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = kWarpLanes;
inline constexpr unsigned kAllLanes = 0xffffffffU;
inline constexpr i64 kMostBlocks = i64{1} << 20;  ///< above this, threads process several items
                                                  ///< each

#ifdef __CUDACC__
/// Queues kernel(args...) and returns. Throws kDeviceFailed with `what` if the launch fails.
template <class... Parameters, class... Args>
void launch(const char* what, void (*kernel)(Parameters...), dim3 grid, int threads, Stream stream,
            const Args&... args) {
  kernel<<<grid, threads, 0, stream>>>(args...);
  require(cudaGetLastError(), what);
}
#endif

/// Number of blocks for n items.
inline unsigned blocks_of(i64 n, i64 of_block) {
  return static_cast<unsigned>(ceil_div(n, of_block));
}
/// Number of blocks for n threads, at most kMostBlocks.
inline unsigned blocks_of(i64 n) {
  return static_cast<unsigned>(std::min(ceil_div(n, kThreads), kMostBlocks));
}

template <class T>
__device__ T of_other_lane(T x, int apart) {
  return __shfl_xor_sync(kAllLanes, x, apart);
}
__device__ inline Field of_other_lane(Field x, int apart) {
  return {__shfl_xor_sync(kAllLanes, x.v, apart)};
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
