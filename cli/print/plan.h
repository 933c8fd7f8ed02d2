#pragma once

#include "cli/print/json_writer.h"
#include "cli/print/table.h"
#include "cli/session.h"
#include "lib/api/plan.h"
#include "lib/api/planning/plan_diff.h"

namespace shardtool::cli {

/// The verdict, what the fullest device holds, what would fit; before it, what a reshard moves.
void print_text(Session& session, const api::PlanReport& report);
/// Tables alone: kCsv one table (the tensors of a reshard, else the devices), kMarkdown all, with
/// headings.
void print_tables(Session& session, const api::PlanReport& report, TableFormat format);
/// One line per value that differs, but for those of single devices and tensors; last "same" or
/// "differs".
void print_text(Session& session, const api::PlanDiff& diff);
/// The fields of the documents, after the envelope.
void write_fields(JsonWriter& json, const api::PlanDiff& diff);
void write_fields(JsonWriter& json, const api::PlanReport& report);

}  // namespace shardtool::cli
