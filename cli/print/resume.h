#pragma once

#include "cli/session.h"
#include "lib/api/interrupted.h"

namespace shardtool::cli {

/// Runs that `shardtool resume` found, or deleted.
struct ResumeReport {
  bool discarded = false;
  api::InterruptedRuns found;
};

/// Prints every run, how it goes on and how to delete it; with -q the paths of the outputs only.
void print_text(Session& session, const ResumeReport& report);
void write_fields(JsonWriter& json, const ResumeReport& report);

}  // namespace shardtool::cli
