#pragma once

#include <algorithm>

#include "kernels/device/block.cuh"
#include "kernels/device/launch.h"
#include "kernels/field/field.h"

/// For .cu files only.
namespace shardtool::kernels::gpu {

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

static_assert(kThreads == kMostLanes);

/// The threads of a warp, or of a block (LaneTeam). nvcc compiles them for the host, too, where
/// nobody calls them.
class ThreadLanes {
 public:
  SHARDTOOL_BOTH explicit ThreadLanes(int count) : count_(count) {}

  SHARDTOOL_BOTH int count() const { return count_; }
  SHARDTOOL_BOTH int lane() const {
#ifdef __CUDA_ARCH__
    return static_cast<int>(threadIdx.x) & (count_ - 1);
#else
    return 0;
#endif
  }
  template <class T>
  SHARDTOOL_BOTH T other(T x, [[maybe_unused]] int apart) const {
#ifdef __CUDA_ARCH__
    return __shfl_xor_sync(kAllLanes, x, apart);
#else
    return x;
#endif
  }
  SHARDTOOL_BOTH Field other(Field x, int apart) const {
    return {other(x.v, apart)};
  }
  template <class T>
  SHARDTOOL_BOTH T* slots() const {
#ifdef __CUDA_ARCH__
    __shared__ alignas(T) unsigned char slots[kThreads / kWarp * sizeof(T)];
    return reinterpret_cast<T*>(slots);
#else
    return nullptr;
#endif
  }
  SHARDTOOL_BOTH void sync() const {
#ifdef __CUDA_ARCH__
    if (count_ == kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
#endif
  }

 private:
  int count_;
};

/// Blocks of teams that a multiprocessor has room for: its registers hide the time of reads.
inline constexpr int kBlocksAtOnce = 2;

/// A block has one team, or one per warp.
template <class Work>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce) teams_of(const Work work) {
  const int lanes = work.lanes();
  const int teams = kThreads / lanes;
  const LaneTeam team{ThreadLanes(lanes)};
  const int own = static_cast<int>(threadIdx.x) / lanes;
  for (i64 i = i64{blockIdx.x} * teams + own; i < work.count(); i += i64{gridDim.x} * teams) {
    work(i, team);
  }
}

template <class Work>
void run(const Work& work, Stream stream) {
  const i64 n = work.count();
  if (n == 0) return;
  if constexpr (TeamWork<Work>) {
    teams_of<Work><<<blocks_of(n * work.lanes()), kThreads, 0, stream>>>(work);
  } else {
    items_of<Work><<<blocks_of(n), kThreads, 0, stream>>>(work);
  }
  require(cudaGetLastError(), "the launch of a kernel");
}

}  // namespace shardtool::kernels::gpu
