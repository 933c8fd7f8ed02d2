#pragma once

#include <functional>
#include <string>

#include "lib/base/checked.h"

namespace shardtool::exec {

/// Progress of a run. `item` names the last moved item, usually a tensor.
struct Progress {
  i64 bytes_done = 0;
  i64 bytes_total = 0;
  std::string item;
};

/// The memory and threads that a run may use, and its reports of progress. Interruptible
/// (lib/base/interruption.h) ends it before time, before the next chunk.
struct Resources {
  i64 max_memory = 64 << 20;  ///< bytes of buffers, over all threads; headers come on top
  /// Same for a run that reads or writes an object store, whose answers come late: it sets how many
  /// requests are under way.
  i64 store_memory = 512 << 20;
  int threads = 0;  ///< 0: chosen from the machine and the budget
  /// Called from one thread at a time.
  std::function<void(const Progress&)> on_progress;
};

}  // namespace shardtool::exec
