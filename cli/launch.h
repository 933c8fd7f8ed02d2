#pragma once

#include <optional>

#include "cli/command.h"
#include "lib/comm/launch.h"

namespace shardtool::cli {

/// The launch, where a launcher (mpirun, srun, torchrun) started this process with others, with the
/// options that remember_options() was given. Throws kUsage.
std::optional<comm::Launch> this_launch();

/// Keeps what was typed for a command, after it was parsed, so that processes of one launch can
/// compare it.
void remember_options(const Command& command);

/// Whether this process is one of a launch that another one leads. Throws kUsage.
bool follows();

/// Processes of a launch answer with one voice: those that do not lead it write to nowhere from now
/// on. What fails in one of them the leading one says.
void silence_followers();

/// Lets this process write to standard error again: the one that leads is gone.
void speak_for_lost_leader();

}  // namespace shardtool::cli
