#pragma once

#include <atomic>
#include <functional>

#include "lib/base/checked.h"
#include "lib/exec/resources.h"

namespace shardtool::exec {

/// Threads of a run by default.
inline constexpr i64 kDefaultThreads = 4;

/// Threads of a run whose threads have a buffer of so many bytes each: at least one, and no more
/// than max_memory has room for.
i64 threads_with_buffers(const Resources& resources, i64 buffer_bytes);

/// Calls `work` on this thread and on `threads` - 1 more at once (on fewer if the system refuses
/// them) and waits for all. Throws the first failure; sets `stop` before that, so that the others
/// can end early.
void run_workers(i64 threads, const std::function<void(const std::atomic<bool>& stop)>& work);

}  // namespace shardtool::exec
