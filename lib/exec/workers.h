#pragma once

#include <atomic>
#include <functional>

#include "lib/base/checked.h"

namespace shardtool::exec {

/// Threads of a run by default.
inline constexpr i64 kDefaultThreads = 4;

/// Calls `work` on this thread and on `threads` - 1 more at once (on fewer if the system refuses
/// them) and waits for all. Throws the first failure; sets `stop` before that, so that the others
/// can end early.
void run_workers(i64 threads, const std::function<void(const std::atomic<bool>& stop)>& work);

}  // namespace shardtool::exec
