#include "lib/exec/workers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/threads.h"

namespace shardtool::exec {

i64 threads_with_buffers(const Resources& resources, i64 buffer_bytes) {
  const i64 wanted = resources.threads > 0 ? resources.threads : kDefaultThreads;
  return std::clamp<i64>(resources.max_memory / buffer_bytes, 1, wanted);
}

void run_workers(i64 threads, const std::function<void(const std::atomic<bool>& stop)>& work) {
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work(stop);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      stop = true;
    }
  };
  {
    std::vector<std::jthread> helpers;
    start_workers(helpers, threads - 1, guarded);
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardtool::exec
