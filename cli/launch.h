#pragma once

#include <optional>

#include "shardtool/comm/launch.h"

namespace shardtool::cli {

/// Whether a launcher (mpirun, srun, torchrun) started this process with others. Throws kUsage.
std::optional<comm::Launch> this_launch();

/// Whether this process is one of a launch that another one leads. Throws kUsage.
bool follows();

/// Processes of a launch answer with one voice: those that do not lead it write to nowhere from now
/// on. What fails in one of them the leading one says.
void silence_followers();

/// Lets this process write to standard error again: the one that leads is gone.
void speak_for_lost_leader();

}  // namespace shardtool::cli
