#pragma once

#include <optional>

#include "cli/command.h"
#include "lib/comm/launch.h"

namespace shardtool::cli {

/// Looks up the environment variables of this process.
comm::Environment process_variables();

/// Returns the launch if a launcher (mpirun, srun, torchrun) started this process as one of
/// several, with the options given to remember_options(). Throws kUsage.
std::optional<comm::Launch> this_launch();

/// Stores a command's parsed arguments, so that the processes of a launch can compare them.
void remember_options(const Command& command);

/// True if this process belongs to a launch and does not lead it. Throws kUsage.
bool follows();

/// Redirects the output of followers to /dev/null. The leading process reports their failures.
void silence_followers();

/// Restores the output of a silenced process: after the leading one is gone, and where every
/// process has its own report.
void speak();

}  // namespace shardtool::cli
