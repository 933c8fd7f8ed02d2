#include "cli/commands/schema.h"

#include "cli/session.h"
#include "lib/api/presets.h"

namespace shardtool::cli {
namespace {

ExitCode run_schema(Session& session) {
  const auto schema = api::mapping_schema();
  if (session.json()) {
    session.document("schema", Status::kOk,
                     [&schema](JsonWriter& json) { json.key("schema").raw(schema); });
  } else {
    session.out().write(schema);
  }
  return ExitCode::kSuccess;
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .summary = "print the JSON Schema of mapping files",
          .description = "Give it to an editor to complete and check mapping files while typing.",
          .examples = {"shardtool schema > shardtool.schema.json"},
          .run = run_schema};
}

}  // namespace shardtool::cli
