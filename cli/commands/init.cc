#include "cli/commands/init.h"

#include "cli/answer_file.h"
#include "cli/session.h"

namespace shardtool::cli {
namespace {

ExitCode run_init(const InitArgs& args, Session& session) {
  const auto text = api::init_mapping(to_options(args));
  if (args.output) write_answer(*args.output, text);
  if (session.json()) {
    session.document("init", Status::kOk, [&](JsonWriter& json) {
      json.key("mapping").raw(text);
      if (args.output) json.field("output", *args.output);
    });
  } else {
    session.out().write(args.output ? *args.output + "\n" : text);
  }
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
              "mapping that extends it, with the mesh and the axes spelled out.",
          .examples = {"shardtool init models/llama-8b -o mapping.json",
                       "shardtool init models/llama-8b --mesh tp=8"},
          .arguments = {{.name = "SRC",
                         .help = "a checkpoint with its config.json",
                         .target = &args.source,
                         .required = true},
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
