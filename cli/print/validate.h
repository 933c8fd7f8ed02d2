#pragma once

#include "cli/session.h"
#include "lib/api/reports.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints the tiers, faults with their places, collectives and coverage; last the verdict. With -q
/// only faults: the exit code has the answer.
void print_text(Session& session, const api::ValidateReport& report);
void write_fields(JsonWriter& json, const api::ValidateReport& report);

/// Prints every system with its gradients and collectives, then the planted faults; last the
/// verdict.
void print_text(Session& session, const api::DemoRunReport& report);
void write_fields(JsonWriter& json, const api::DemoRunReport& report);

}  // namespace shardtool::cli
