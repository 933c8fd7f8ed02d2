#include "cli/commands/reshard.h"

#include <utility>

#include "cli/args/share_args.h"
#include "cli/args/watch.h"
#include "cli/commands/merge.h"
#include "cli/print/answer.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

ExitCode run_reshard(const ReshardArgs& args, Session& session) {
  auto options = to_options(args);
  options.write.command_line = words_without_share(session.words());
  const auto report = [&] {
    const Watch watch(session, options.write.resources);
    return api::reshard(options);
  }();
  answer(session, "reshard", Status::kOk, report);
  return ExitCode::kSuccess;
}

}  // namespace

api::ReshardOptions to_options(const ReshardArgs& args) {
  refuse_both("--plan", args.plan.has_value(), "a destination", args.to.given());
  if (!args.plan && !args.to.given()) {
    throw Error(ErrorCode::kUsage, "reshard needs a destination")
        .help(
            "give --to-mesh, --to, --to-preset, --tp, --ep, --pp, --axes, --axis-mapping, or "
            "--plan; for other files on the same mesh, give that mesh with --to-mesh");
  }
  if (!args.plan && args.sources.empty()) {
    throw Error(ErrorCode::kUsage, "'reshard' needs SRC")
        .help("only a --plan says by itself what is resharded");
  }
  api::MappingChoice to = to_mapping_choice(args.to, kDestination);
  to.path.clear();
  return {.sources = args.sources,
          .to = std::move(to),
          .ranks = to_ranks(args.ranks),
          .compare_replicas = args.replicas == "compare",
          .write = to_write_options(args.write),
          .plan = args.plan.value_or(""),
          .to_layout = args.to.file.value_or("")};
}

Command reshard_command(ReshardArgs& args) {
  Command command{
      .name = "reshard",
      .summary = "turn shards for one mesh into shards for another",
      .description =
          "Moves bytes straight from the old shards to the new ones; the whole checkpoint is never "
          "put together. The result is byte for byte what split would write for the destination. "
          "Without a mapping file or a preset, the mapping that the manifest holds is used again. "
          "To change the form of the files alone, give the mesh of SRC, too: --layout vllm "
          "--to-mesh tp=4.",
      .examples = {"shardtool reshard out/tp4 -o out/tp8 --to-mesh tp=8",
                   "shardtool reshard out/tp4 -o out/ep --to mixtral-ep.json --dry-run",
                   "shardtool reshard out/param -o out/compute --to compute",
                   "shardtool reshard --plan plan.json -o out/tp8"},
      .arguments =
          {{.name = "SRC",
            .help =
                "output folders that together hold every shard; none with --plan, which names them",
            .target = &args.sources},
           {.name = "--plan",
            .value = "FILE",
            .help = "do exactly what `shardtool plan ... -o FILE` planned, or nothing",
            .target = &args.plan}},
      .run = [&args](Session& session) { return run_reshard(args, session); }};
  append(command.arguments, write_arguments(args.write));
  append(command.arguments, mapping_arguments(args.to, kDestination));
  append(command.arguments, rank_arguments(args.ranks));
  command.arguments.push_back(replicas_argument(args.replicas));
  return command;
}

}  // namespace shardtool::cli
