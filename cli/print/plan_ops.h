#pragma once

#include "cli/session.h"
#include "lib/api/planning/plan_ops.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints every op of every kind of layer with its moves, then all collectives and the total. With
/// `explain` only the choices of the ops that make this value. Throws kUnknownName for a value that
/// no op makes.
void print_text(Session& session, const api::OpPlanReport& report, const std::string& explain);
void write_fields(JsonWriter& json, const api::OpPlanReport& report);

}  // namespace shardtool::cli
