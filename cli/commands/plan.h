#pragma once

#include "cli/command.h"
#include "cli/commands/plan_args.h"

namespace shardtool::cli {

/// `args` must outlive the command.
Command plan_command(PlanArgs& args);

}  // namespace shardtool::cli
