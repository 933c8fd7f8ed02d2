#pragma once

#include "cli/command.h"
#include "cli/commands/show.h"

namespace shardtool::cli {

/// `args` must outlive the command.
Command presets_command(ShowArgs& args);

}  // namespace shardtool::cli
