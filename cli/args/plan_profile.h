#pragma once

#include "cli/args/plan_args.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "lib/api/calibrate.h"

namespace shardtool::cli {

/// Runs `plan profile [list | show NAME | calibrate [FOLDER]]`.
ExitCode run_plan_profile(const PlanArgs& args, Session& session);

/// Options of `plan profile calibrate`. Throws kUsage.
api::CalibrateOptions to_calibrate_options(const PlanArgs& args);

}  // namespace shardtool::cli
