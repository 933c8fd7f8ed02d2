#pragma once

#include "cli/args/plan_args.h"
#include "cli/command.h"

namespace shardtool::cli {

/// `args` must outlive the command.
Command plan_command(PlanArgs& args);

}  // namespace shardtool::cli
