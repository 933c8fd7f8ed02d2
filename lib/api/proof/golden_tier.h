#pragma once

#include <string>

#include "lib/api/validate.h"
#include "lib/engine/side.h"

namespace shardtool::api {

/// Holds the unsharded model in f32 against the results of another implementation, and adds the
/// tier, with a note on the first difference, to the report. Throws the errors of load_golden and
/// of engine::compare_with_golden.
void add_golden_tier(const std::string& path, const engine::Side& whole, ValidateReport& report);

}  // namespace shardtool::api
