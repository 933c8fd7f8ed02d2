#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/comm/launch.h"

namespace shardtool::cli {

/// Returns the share of this process:
///
///     I/N      share I of N, from 0
///     auto     the scheduler numbers this process and counts all of them
///     auto/N   the scheduler numbers this process; for those that do not count, and for a part of
///              an array that runs again
///     absent   a launch (comm::detect_launch) of several processes makes each a share
///
/// Schedulers are launches, Slurm arrays from 0 (SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT), indexed
/// jobs of Kubernetes (JOB_COMPLETION_INDEX), and RANK with WORLD_SIZE. An array or a job is taken
/// only when it is asked for: its tasks may as well split different checkpoints. Throws kUsage,
/// also when two schedulers number this process.
std::optional<api::Share> to_share(const std::optional<std::string>& typed,
                                   const comm::Environment& environment);

/// Returns the words of a command without --share and its value: the same for all shares of a run.
std::vector<std::string> words_without_share(const std::vector<std::string>& words);

}  // namespace shardtool::cli
