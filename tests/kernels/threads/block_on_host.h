#pragma once

#include <ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/device/device.h"

/// Runs kernels whose threads work together (kernels/device/block.cuh) on the host. Declares what
/// CUDA declares, so it is included before the kernels.
///
/// The threads of a block are contexts of one thread. One runs until it reaches a barrier or the
/// end, then another, in a random order, and at times a warp goes ahead of the others: results that
/// depend on an order that no barrier gives become wrong.

// NOLINTBEGIN: CUDA's names
#define __device__
#define __global__
#define __shared__ static thread_local
#define __launch_bounds__(...)

struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
// NOLINTEND

namespace shardtool::kernels::gpu_on_host {

using gpu::Stream;

/// A block of threads, and the barriers at which they wait.
class BlockOnHost {
 public:
  BlockOnHost(int threads, std::uint64_t seed)
      : threads_(static_cast<size_t>(threads)), random_(seed) {}

  /// Runs kernel() in every thread.
  void run(const std::function<void()>& kernel);
  /// Returns when all threads of the group of `size` threads that still run are at a barrier.
  void wait(int size);
  /// Exchanges a value with the thread of the warp whose number differs by `mask`.
  std::uint64_t exchange(std::uint64_t value, int mask);

  int current() const { return static_cast<int>(current_); }
  static BlockOnHost& running() { return *running_; }

 private:
  static constexpr int kWarpThreads = 32;
  enum class State { kReady, kWaiting, kEnded };
  struct Thread {
    ucontext_t begin{};  ///< enters the thread on its stack
    jmp_buf here{};      ///< where it waits
    bool has_begun = false;
    State state = State::kReady;
    int group = 0;  ///< size of the group that it waits for
    std::uint64_t value = 0;
  };

  static void enter();
  void go_on(Thread& thread);
  void release(size_t thread);

  std::vector<Thread> threads_;
  std::mt19937_64 random_;
  const std::function<void()>* kernel_ = nullptr;
  jmp_buf scheduler_{};
  size_t current_ = 0;
  static inline thread_local BlockOnHost* running_ = nullptr;
};

inline void BlockOnHost::enter() {
  BlockOnHost& block = *running_;
  (*block.kernel_)();
  block.threads_[block.current_].state = State::kEnded;
  _longjmp(block.scheduler_, 1);
}

/// Returns when the thread waits or has ended. Jumps, since swapcontext() calls the system.
inline void BlockOnHost::go_on(Thread& thread) {
  if (_setjmp(scheduler_) != 0) return;
  if (thread.has_begun) _longjmp(thread.here, 1);
  thread.has_begun = true;
  setcontext(&thread.begin);
}

/// Lets the threads of a group go on once all of them are at the barrier.
inline void BlockOnHost::release(size_t thread) {
  const auto size = static_cast<size_t>(threads_[thread].group);
  const size_t first = thread / size * size;
  const size_t last = std::min(first + size, threads_.size());
  // A warp may wait for the others while these wait for one another.
  for (size_t i = first; i < last; ++i) {
    if (threads_[i].state == State::kReady) return;
  }
  for (size_t i = first; i < last; ++i) {
    if (threads_[i].state == State::kWaiting && threads_[i].group != threads_[thread].group) {
      throw std::logic_error("threads of a group wait at different barriers");
    }
  }
  for (size_t i = first; i < last; ++i) {
    if (threads_[i].state == State::kWaiting) threads_[i].state = State::kReady;
  }
}

inline void BlockOnHost::run(const std::function<void()>& kernel) {
  constexpr size_t kStack = size_t{64} << 10;
  static thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;  // of all blocks
  while (stacks.size() < threads_.size()) stacks.emplace_back(new std::byte[kStack]);
  kernel_ = &kernel;
  running_ = this;
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    getcontext(&thread.begin);
    thread.begin.uc_stack.ss_sp = stacks[i].get();
    thread.begin.uc_stack.ss_size = kStack;
    makecontext(&thread.begin, &BlockOnHost::enter, 0);
  }
  std::vector<size_t> order(threads_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto is_ready = [this](size_t i) { return threads_[i].state == State::kReady; };
  while (std::ranges::any_of(order, is_ready)) {
    std::ranges::shuffle(order, random_);
    // All threads go on to their next barriers, or one warp goes ahead of the others as far as it
    // can.
    const bool has_leader = random_() % 2 == 0;
    const size_t warp = *std::ranges::find_if(order, is_ready) / kWarpThreads;
    const auto may_go_on = [&](size_t i) {
      return is_ready(i) && (!has_leader || i / kWarpThreads == warp);
    };
    do {
      for (const size_t i : order) {
        if (!may_go_on(i)) continue;
        current_ = i;
        go_on(threads_[i]);
        if (threads_[i].state == State::kWaiting) release(i);
      }
    } while (has_leader && std::ranges::any_of(order, may_go_on));
  }
}

inline void BlockOnHost::wait(int size) {
  Thread& thread = threads_[current_];
  thread.group = size;
  thread.state = State::kWaiting;
  if (_setjmp(thread.here) == 0) _longjmp(scheduler_, 1);
}

inline std::uint64_t BlockOnHost::exchange(std::uint64_t value, int mask) {
  const size_t thread = current_;
  threads_[thread].value = value;
  wait(kWarpThreads);
  const std::uint64_t other = threads_[thread ^ static_cast<size_t>(mask)].value;
  wait(kWarpThreads);
  return other;
}

/// Runs the blocks one after another.
template <class... Parameters, class... Args>
void launch(const char* /*what*/, void (*kernel)(Parameters...), dim3 grid, int threads,
            Stream /*stream*/, const Args&... args);

}  // namespace shardtool::kernels::gpu_on_host

// NOLINTBEGIN: CUDA's names
struct ThreadIndex {
  /// Number of the running thread.
  struct X {
    operator unsigned() const {
      return static_cast<unsigned>(
          shardtool::kernels::gpu_on_host::BlockOnHost::running().current());
    }
  };
  X x;
};
inline constexpr ThreadIndex threadIdx;
inline thread_local dim3 blockIdx, blockDim, gridDim;

inline void __syncthreads() {
  shardtool::kernels::gpu_on_host::BlockOnHost::running().wait(static_cast<int>(blockDim.x));
}
inline void __syncwarp() {
  shardtool::kernels::gpu_on_host::BlockOnHost::running().wait(32);
}
template <class T>
T __shfl_xor_sync(unsigned /*mask*/, T value, int other) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shardtool::kernels::gpu_on_host::BlockOnHost::running().exchange(bits, other);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __ldg(const T* from) {
  return *from;
}
// NOLINTEND

namespace shardtool::kernels::gpu_on_host {

template <class... Parameters, class... Args>
void launch(const char* /*what*/, void (*kernel)(Parameters...), dim3 grid, int threads,
            Stream /*stream*/, const Args&... args) {
  blockDim = {static_cast<unsigned>(threads)};
  gridDim = grid;
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y};
      BlockOnHost(threads, x + (std::uint64_t{y} << 32)).run([&] { kernel(args...); });
    }
  }
}

}  // namespace shardtool::kernels::gpu_on_host
