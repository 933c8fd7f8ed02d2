#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Starts one more thread, which calls `work`. Returns false if the system refuses it, at a limit
/// of threads or of memory.
template <class Work>
bool start_thread(std::vector<std::jthread>& threads, Work&& work) {
  try {
    threads.emplace_back(std::forward<Work>(work));
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
