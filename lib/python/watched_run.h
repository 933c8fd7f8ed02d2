#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "lib/exec/resources.h"

namespace shardtool::python {

/// Runs `work` on a thread of its own, without the GIL, and meanwhile calls progress(bytes_done,
/// bytes_total, item) and Python's signal handlers on this one. An exception of either ends the
/// run, which leaves what an interrupted command leaves, and is raised. `progress` may be None.
void run_watched(exec::Resources& resources, nanobind::handle progress,
                 const std::function<void()>& work);

}  // namespace shardtool::python
