#include "cli/commands/reference/version.h"

#include "cli/session.h"

namespace shardtool::cli {

ExitCode run_version(Session& session) {
  if (!session.json()) {
    session.out().write("shardtool " SHARDTOOL_VERSION "\n");
    return ExitCode::kSuccess;
  }
  session.document("version", Status::kOk, [](JsonWriter& json) {
    json.field("version", SHARDTOOL_VERSION).field("compiler", SHARDTOOL_COMPILER);
    json.key("formats")
        .begin_object()
        .field("documents", "1.0")
        .field("manifest", "1.0")
        .field("mapping", "1")
        .field("graph", "1")
        .field("ops", "1")
        .field("profile", "1")
        .field("plan", "1.0")
        .field("baseline", "2.0")
        .end_object();
  });
  return ExitCode::kSuccess;
}

Command version_command() {
  return {.name = "version",
          .summary = "print the version",
          .description = "With --json also the compiler and the versions of the formats it writes.",
          .examples = {"shardtool version --json"},
          .run = run_version};
}

}  // namespace shardtool::cli
