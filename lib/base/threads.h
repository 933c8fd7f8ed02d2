#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/interruption.h"

namespace shardtool {

/// Starts one more thread, which calls `work` and is interrupted like this one. Returns false if
/// the system refuses it, at a limit of threads or of memory.
template <class Work>
bool start_thread(std::vector<std::jthread>& threads, Work&& work) {
  try {
    threads.emplace_back([flag = interruption(), work = std::forward<Work>(work)](
                             [[maybe_unused]] const std::stop_token& stop) mutable {
      const Interruptible scope(flag);
      if constexpr (std::is_invocable_v<decltype(work)&, const std::stop_token&>) {
        work(stop);
      } else {
        work();
      }
    });
    return true;
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Starts `count` more threads that each call `work`, or fewer if the system refuses them.
template <class Work>
void start_workers(std::vector<std::jthread>& threads, i64 count, const Work& work) {
  for (i64 i = 0; i < count && start_thread(threads, work); ++i) {
  }
}

}  // namespace shardtool
