#pragma once

#include <optional>

#include "cli/args/plan_args.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "lib/api/calibrate.h"

namespace shardtool::cli {

/// Runs `plan profile [list | show NAME | calibrate [FOLDER]]`.
ExitCode run_plan_profile(const PlanArgs& args, Session& session);

/// Returns how the processes of a launch meet to calibrate; nullopt for other forms of `plan`,
/// which run in each of them. Throws kUsage.
std::optional<comm::EngineChoice> calibration_meeting(const PlanArgs& args);

/// Options of `plan profile calibrate`. Throws kUsage.
api::CalibrateOptions to_calibrate_options(const PlanArgs& args);

}  // namespace shardtool::cli
