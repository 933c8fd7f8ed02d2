#pragma once

#include "lib/base/checked.h"

namespace shardtool {

/// Peak resident memory of this program in bytes. Unlike getrusage's ru_maxrss, which a process
/// keeps through exec, it excludes the launching program (a Python of half a GiB, say). 0 if /proc
/// is not mounted.
i64 peak_memory_bytes();

}  // namespace shardtool
