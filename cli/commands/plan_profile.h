#pragma once

#include "cli/commands/plan_args.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "shardtool/api/calibrate.h"

namespace shardtool::cli {

/// `plan profile [list | show NAME | calibrate [FOLDER]]`.
ExitCode run_plan_profile(const PlanArgs& args, Session& session);

/// Of `plan profile calibrate`. Throws kUsage.
api::CalibrateOptions to_calibrate_options(const PlanArgs& args);

}  // namespace shardtool::cli
