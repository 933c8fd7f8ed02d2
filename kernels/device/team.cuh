#pragma once

#include "kernels/device/block.cuh"
#include "kernels/device/launch.h"

// nvcc compiles works for the host, too, where no team of threads runs.
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
#define SHARDTOOL_HAS_THREADS
#endif

/// Works whose items have teams of threads. For .cu files, and for tests (device/block.cuh).
namespace shardtool::kernels::SHARDTOOL_GPU {

static_assert(kThreads == kMostLanes);

/// The threads of a warp, or of a block (LaneTeam).
class ThreadLanes {
 public:
  SHARDTOOL_BOTH explicit ThreadLanes(int count) : count_(count) {}

  SHARDTOOL_BOTH int count() const { return count_; }
  SHARDTOOL_BOTH int lane() const {
#ifdef SHARDTOOL_HAS_THREADS
    return static_cast<int>(threadIdx.x) & (count_ - 1);
#else
    return 0;
#endif
  }
  template <class T>
  SHARDTOOL_BOTH T other(T x, [[maybe_unused]] int apart) const {
#ifdef SHARDTOOL_HAS_THREADS
    return of_other_lane(x, apart);
#else
    return x;
#endif
  }
  template <class T>
  SHARDTOOL_BOTH T* slots() const {
#ifdef SHARDTOOL_HAS_THREADS
    alignas(T) __shared__ unsigned char slots[kThreads / kWarp * sizeof(T)];
    return reinterpret_cast<T*>(slots);
#else
    return nullptr;
#endif
  }
  SHARDTOOL_BOTH void sync() const {
#ifdef SHARDTOOL_HAS_THREADS
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

/// Number of blocks that a multiprocessor has registers for: some compute while others read.
template <class Work>
constexpr int blocks_at_once() {
  if constexpr (requires { Work::kBlocksAtOnce; }) {
    return Work::kBlocksAtOnce;
  } else {
    return 4;
  }
}

/// A block has one team, or one per warp.
template <class Work>
__global__ void __launch_bounds__(kThreads, blocks_at_once<Work>()) teams_of(const Work work) {
  const int lanes = work.lanes();
  const int teams = kThreads / lanes;
  const LaneTeam team{ThreadLanes(lanes)};
  const int own = static_cast<int>(threadIdx.x) / lanes;
  for (i64 i = i64{blockIdx.x} * teams + own; i < work.count(); i += i64{gridDim.x} * teams) {
    work(i, team);
  }
}

/// Queues all items and returns.
template <class Work>
void run_teams(const Work& work, Stream stream) {
  launch("the launch of a team's kernel", teams_of<Work>,
         dim3{blocks_of(work.count() * work.lanes())}, kThreads, stream, work);
}

#undef SHARDTOOL_HAS_THREADS

}  // namespace shardtool::kernels::SHARDTOOL_GPU
