#include "cli/commands/finish.h"

#include "cli/args/watch.h"
#include "cli/print/answer.h"
#include "cli/print/validate.h"
#include "lib/api/validate.h"

namespace shardtool::cli {
namespace {

ExitCode run_finish(const FinishArgs& args, Session& session) {
  if (api::has_verdicts(args.output)) {
    return give_verdict(session, api::joined_verdict(args.output));
  }
  auto options = to_options(args);
  const auto report = [&] {
    const Watch watch(session, options.resources, "reading");
    return api::finish(options);
  }();
  answer(session, "finish", Status::kOk, report);
  return ExitCode::kSuccess;
}

}  // namespace

api::FinishOptions to_options(const FinishArgs& args) {
  api::FinishOptions options{args.output, args.force, args.verify, {}};
  set_resources(args.resources, options.resources);
  return options;
}

Command finish_command(FinishArgs& args) {
  Command command{
      .name = "finish",
      .summary = "publish what was written in shares, or give their verdict",
      .description =
          "split, merge and reshard with --share I/N each move a share of the bytes. They may run "
          "on several machines and in any order, without a connection, if all reach the output, a "
          "folder or s3://bucket/prefix. The share that ends last publishes the output. finish "
          "publishes it if that share could not, and names the shares that have not ended. Run a "
          "share that failed again, alone; to run one twice does no harm. The files and the "
          "manifest are byte for byte those of one run without shares. finish reads the records of "
          "the shares, and not the source. For the folder in which the shares of `validate` leave "
          "their verdicts, it gives the verdict on all layers, as `validate` does.",
      .examples = {"shardtool finish out", "shardtool finish out --verify --json",
                   "shardtool finish verdicts"},
      .arguments = {{.name = "FOLDER",
                     .help = "the output, or the folder of verdicts, as the shares name it",
                     .target = &args.output,
                     .required = true},
                    {.name = "--force",
                     .help = "replace an earlier output: its whole folder, with every file in it",
                     .target = &args.force},
                    {.name = "--verify",
                     .help = "read the output back and compare every shard with its hash",
                     .target = &args.verify}},
      .run = [&args](Session& session) { return run_finish(args, session); }};
  append(command.arguments, resource_arguments(args.resources));
  return command;
}

}  // namespace shardtool::cli
