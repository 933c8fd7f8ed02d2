#include "cli/commands/reference/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/embedded_schemas.h"
#include "cli/session.h"
#include "lib/api/catalogue/presets.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view kMappingSchema = "mapping";

/// Returns the schema of mapping files, or one of cli/schemas. Throws kUsage.
std::string schema_text(const std::string& name) {
  if (name == kMappingSchema) return api::mapping_schema();
  const auto all = embedded_schemas();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const EmbeddedSchema& one) { return one.name == name; });
  if (found != all.end()) return std::string(found->text);
  std::vector<std::string> known = {std::string(kMappingSchema)};
  for (const EmbeddedSchema& one : all) known.emplace_back(one.name);
  Error error(ErrorCode::kUsage, fmt::format("there is no schema '{}'", quote_for_message(name)));
  error.note("schemas", fmt::format("{}", fmt::join(known, ", ")));
  const std::string hint = did_you_mean(name, known);
  if (!hint.empty()) error.help(hint);
  throw error;
}

ExitCode run_schema(const SchemaArgs& args, Session& session) {
  const auto schema = schema_text(args.name.value_or(std::string(kMappingSchema)));
  if (session.json()) {
    session.document("schema", Status::kOk,
                     [&schema](JsonWriter& json) { json.key("schema").raw(schema); });
  } else {
    session.out().write(schema);
  }
  return ExitCode::kSuccess;
}

}  // namespace

Command schema_command(SchemaArgs& args) {
  return {
      .name = "schema",
      .summary = "print a JSON Schema: of mapping files, manifests or reports",
      .description =
          "Without a name, prints the schema of mapping files; graph, profile and policy are those "
          "of files for --graph, --profile and --policy. Give them to an editor to complete and "
          "check such files while typing. manifest is the schema of an output's manifest.json, "
          "progress that of a line of --progress json, and the name of a command that of its "
          "--json document: plan, plan_search, plan_diff, plan_profile. Documents of another form "
          "are plan_ops (plan --ops), plan_search_train (plan search --train), validate_demo "
          "(validate --demo), and error, for every document whose status is error. The field "
          "\"command\" of a document names its schema; finish prints the document of validate for "
          "verdicts. These schemas share the definitions of urn:shardtool:document:1.0, which "
          "`shardtool schema document` prints.",
      .examples = {"shardtool schema > shardtool.schema.json", "shardtool schema graph",
                   "shardtool schema manifest", "shardtool schema plan_search",
                   "shardtool schema document"},
      .arguments =
          {{.name = "NAME",
            .help = "mapping, graph, profile, policy, manifest, progress, document, error, or a "
                    "command",
            .target = &args.name}},
      .run = [&args](Session& session) { return run_schema(args, session); }};
}

}  // namespace shardtool::cli
