#include "cli/commands/merge.h"

#include "cli/args/watch.h"
#include "cli/print/answer.h"

namespace shardtool::cli {
namespace {

ExitCode run_merge(const MergeArgs& args, Session& session) {
  auto options = to_options(args);
  const auto report = [&] {
    const Watch watch(session, options.write.resources);
    return api::merge(options);
  }();
  answer(session, "merge", Status::kOk, report);
  return ExitCode::kSuccess;
}

}  // namespace

api::MergeOptions to_options(const MergeArgs& args) {
  return {.sources = args.sources,
          .compare_replicas = args.replicas == "compare",
          .write = to_write_options(args.write)};
}

Command merge_command(MergeArgs& args) {
  Command command{
      .name = "merge",
      .summary = "put the parts together again",
      .description =
          "Reads outputs of split or reshard and writes the whole checkpoint, byte for byte what "
          "was split. Copies of one tensor on several devices are compared; they must be equal.",
      .examples = {"shardtool merge out/tp4 -o full",
                   "shardtool merge node0/out node1/out -o full --max-file-size 5GB"},
      .arguments = {{.name = "SRC",
                     .help = "output folders that together hold every part",
                     .target = &args.sources,
                     .required = true},
                    replicas_argument(args.replicas)},
      .run = [&args](Session& session) { return run_merge(args, session); }};
  append(command.arguments, write_arguments(args.write));
  return command;
}

Argument replicas_argument(std::string& replicas) {
  return {.name = "--replicas",
          .value = "HOW",
          .help = "compare every copy of a tensor (the default), or read the first only",
          .target = &replicas,
          .choices = {"compare", "first"}};
}

}  // namespace shardtool::cli
