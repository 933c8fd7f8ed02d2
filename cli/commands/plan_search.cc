#include "cli/commands/plan_search.h"

#include "cli/print/plan_search.h"
#include "lib/api/plan_search.h"
#include "lib/base/error.h"

namespace shardtool::cli {

ExitCode run_plan_search(const PlanArgs& args, Session& session) {
  const api::SearchOptions options = to_search_options(args);
  const api::SearchReport report = api::search_layouts(options);
  if (session.json() || args.format == "json") {
    session.document("plan_search", report.optimum ? Status::kOk : Status::kFindings,
                     [&](JsonWriter& json) { write_fields(json, options, report); });
  } else {
    print_text(session, options, report);
  }
  return report.optimum || args.exit_zero ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace shardtool::cli
