#pragma once

#include "cli/args/plan_args.h"
#include "cli/exit_code.h"
#include "cli/session.h"

namespace shardtool::cli {

/// Runs `plan search MODEL...`. Exits 1 if no layout keeps the limits.
ExitCode run_plan_search(const PlanArgs& args, Session& session);

}  // namespace shardtool::cli
