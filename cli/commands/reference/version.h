#pragma once

#include "cli/command.h"

namespace shardtool::cli {

/// Prints "shardtool 0.1.0", or the JSON document that identifies this build.
ExitCode run_version(Session& session);
Command version_command();

}  // namespace shardtool::cli
