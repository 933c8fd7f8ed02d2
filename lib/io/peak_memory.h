#pragma once

#include "lib/base/checked.h"

namespace shardtool::io {

/// The most bytes that this program had resident at once, up to now. Unlike getrusage's ru_maxrss,
/// which a process keeps through exec, it does not count what launched the program (a Python of
/// half a GiB, say). 0 where /proc is not mounted.
i64 peak_memory_bytes();

}  // namespace shardtool::io
