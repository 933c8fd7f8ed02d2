#include "cli/commands/init.h"

#include <fmt/format.h>

#include "cli/answer_file.h"
#include "cli/session.h"

namespace shardtool::cli {
namespace {

void warn_of_replicated(const api::InitReport& report, const Session& session) {
  if (report.replicated.empty()) return;
  const std::string what =
      report.preset.empty()
          ? std::string("no preset knows this model; its tensors")
          : fmt::format("preset:{} does not know all tensors; those", report.preset);
  session.warn(fmt::format("{} are replicated until you change their rules ({})", what,
                           report.replicated.size()));
}

ExitCode run_init(const InitArgs& args, Session& session) {
  const api::InitReport report = api::init_mapping(to_options(args));
  if (args.output) write_answer(*args.output, report.mapping);
  if (session.json()) {
    session.document("init", Status::kOk, [&](JsonWriter& json) {
      if (!report.preset.empty()) json.field("preset", report.preset);
      json.list("replicated", report.replicated);
      json.key("mapping").raw(report.mapping);
      if (args.output) json.field("output", *args.output);
    });
  } else {
    session.out().write(args.output ? *args.output + "\n" : report.mapping);
  }
  warn_of_replicated(report, session);
  return ExitCode::kSuccess;
}

}  // namespace

api::InitOptions to_options(const InitArgs& args) {
  api::InitOptions options;
  options.source = args.source;
  options.preset = args.preset.value_or("");
  if (args.mesh) options.mesh = mesh::parse_mesh(*args.mesh);
  return options;
}

Command init_command(InitArgs& args) {
  return {.name = "init",
          .summary = "write a mapping file to start from",
          .description =
              "Chooses the preset that fits the checkpoint's config.json and writes a "
              "mapping that extends it, with the mesh and the axes spelled out. Tensors that no "
              "preset knows get a rule each kind, which replicates them and says what they are.",
          .examples = {"shardtool init models/llama-8b -o mapping.json",
                       "shardtool init models/llama-8b --mesh tp=8"},
          .arguments =
              {{.name = "SRC", .help = "a checkpoint", .target = &args.source, .required = true},
               {.name = "--preset",
                .value = "NAME",
                .help = "the preset to extend",
                .target = &args.preset},
               {.name = "--mesh",
                .value = "AXIS=N,...",
                .help = "the devices, default tp=2",
                .target = &args.mesh},
               {.name = "--output",
                .short_name = "-o",
                .value = "FILE",
                .help = "a new file; without it the mapping goes to standard output",
                .target = &args.output}},
          .run = [&args](Session& session) { return run_init(args, session); }};
}

}  // namespace shardtool::cli
