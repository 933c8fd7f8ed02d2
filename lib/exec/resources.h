#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/error.h"

namespace shardtool::exec {

/// Progress of a run. `item` names the last moved item, usually a tensor.
struct Progress {
  i64 bytes_done = 0;
  i64 bytes_total = 0;
  std::string item;
};

/// The memory and threads that a run may use, its reports of progress, and its end before time.
struct Resources {
  i64 max_memory = 64 << 20;  ///< bytes of buffers, over all threads; headers come on top
  /// Same for a run that reads or writes an object store, whose answers come late: it sets how many
  /// requests are under way.
  i64 store_memory = 512 << 20;
  int threads = 0;  ///< 0: chosen from the machine and the budget
  /// Called from one thread at a time.
  std::function<void(const Progress&)> on_progress;
  /// Set from a signal handler: the run ends with kInterrupted before the next chunk.
  const std::atomic<bool>* cancel = nullptr;
};

/// Throws kInterrupted once `cancel` is set. It may be null.
inline void check_cancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && cancel->load()) throw Error(ErrorCode::kInterrupted, "interrupted");
}

}  // namespace shardtool::exec
