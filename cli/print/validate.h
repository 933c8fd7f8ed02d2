#pragma once

#include "cli/print/json_writer.h"
#include "cli/session.h"
#include "lib/api/demo.h"
#include "lib/api/validate.h"

namespace shardtool::cli {

/// The tiers, what is wrong and where, collectives and coverage; last the verdict. With -q nothing
/// but faults: the exit code says it.
void print_text(Session& session, const api::ValidateReport& report);
void write_fields(JsonWriter& json, const api::ValidateReport& report);

/// Every system with its gradients and collectives, then the planted faults; last the verdict.
void print_text(Session& session, const api::DemoRunReport& report);
void write_fields(JsonWriter& json, const api::DemoRunReport& report);

}  // namespace shardtool::cli
