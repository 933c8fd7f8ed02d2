#include "cli/commands/diff.h"

#include "cli/args/mapping_args.h"
#include "cli/args/watch.h"
#include "cli/print/answer.h"

namespace shardtool::cli {
namespace {

ExitCode run_diff(const DiffArgs& args, Session& session) {
  auto options = to_options(args);
  const auto report = [&] {
    const Watch watch(session, options.resources, "reading");
    return api::diff(options);
  }();
  answer(session, "diff", report.equal ? Status::kOk : Status::kFindings, report);
  return report.equal ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace

api::DiffOptions to_options(const DiffArgs& args) {
  api::DiffOptions options;
  options.a = args.a;
  options.b = args.b;
  options.metadata_only = args.metadata_only;
  options.values = args.values;
  options.config = args.model_config;
  refuse_both("--metadata-only", args.metadata_only, "--values", args.values);
  set_resources(args.resources, options.resources);
  return options;
}

Command diff_command(DiffArgs& args) {
  Command command{
      .name = "diff",
      .summary = "compare two checkpoints, unsharded or sharded",
      .description =
          "Compares tensor by tensor, byte by byte. Each side is read through its own layout, so "
          "that a whole checkpoint can be compared with an output of split. Exits 0 when they are "
          "equal, 1 when they differ, and 4 when one of them cannot be read or its files are not "
          "those of its manifest, as when two are exchanged. Warns of files that are not compared, "
          "such as one that a manifest does not name. With --values, an output that was written "
          "with --dtype is proved against its source: A's values are cast as B's manifest records, "
          "and every bit is compared.",
      .examples = {"shardtool diff models/llama-8b out/tp4",
                   "shardtool diff base tuned --metadata-only",
                   "shardtool diff models/llama-f32 out/bf16 --values"},
      .arguments = {{.name = "A",
                     .help = "a checkpoint or an output of shardtool",
                     .target = &args.a,
                     .required = true},
                    {.name = "B", .help = "the other one", .target = &args.b, .required = true},
                    {.name = "--metadata-only",
                     .help = "compare names, dtypes and shapes, read no data",
                     .target = &args.metadata_only},
                    {.name = "--values",
                     .help = "cast A's values where B's manifest records a cast, then compare",
                     .target = &args.values},
                    {.name = "--model-config",
                     .value = "FILE",
                     .help = "the model's config.json, where it is not beside files in a form that "
                             "needs it",
                     .target = &args.model_config}},
      .run = [&args](Session& session) { return run_diff(args, session); }};
  append(command.arguments, resource_arguments(args.resources));
  return command;
}

}  // namespace shardtool::cli
