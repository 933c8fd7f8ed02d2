#include "cli/commands/merge.h"

#include <algorithm>

#include "cli/args/share_args.h"
#include "cli/args/watch.h"
#include "cli/print/answer.h"
#include "lib/api/catalogue/layouts.h"

namespace shardtool::cli {
namespace {

ExitCode run_merge(const MergeArgs& args, Session& session) {
  auto options = to_options(args);
  options.write.command_line = words_without_share(session.words());
  const auto report = [&] {
    const Watch watch(session, options.write.resources);
    return api::merge(options);
  }();
  answer(session, "merge", Status::kOk, report);
  return ExitCode::kSuccess;
}

/// merge writes one whole checkpoint, and refuses layouts of shards with advice.
void offer_whole_layouts(std::vector<Argument>& arguments) {
  const auto layout = std::ranges::find(arguments, "--layout", &Argument::name);
  for (const std::string& name : api::sharded_layouts()) {
    std::erase(layout->choices, name);
    layout->refused.push_back(name);
  }
}

}  // namespace

api::MergeOptions to_options(const MergeArgs& args) {
  return {.sources = args.sources,
          .compare_replicas = args.replicas == "compare",
          .write = to_write_options(args.write),
          .config = args.model_config};
}

Command merge_command(MergeArgs& args) {
  Command command{
      .name = "merge",
      .summary = "put shards together again",
      .description =
          "Reads outputs of split or reshard and writes the whole checkpoint, byte for byte what "
          "the shards hold. That is what was split, unless --dtype, --dequantize or \"read\" of "
          "the mapping changed it. What the mapping dropped stays dropped, such as an "
          "lm_head.weight beside the embedding that it is tied to. Copies of one tensor on several "
          "ranks are compared; they must be equal. A word in front of the path says that another "
          "tool wrote the files: deepseek:, megatron:, meta: or torchtitan: "
          "(shardtool-formats(5)).",
      .examples = {"shardtool merge out/tp4 -o full",
                   "shardtool merge node0/out node1/out -o full --max-file-size 5GB",
                   "shardtool merge deepseek:mp8 -o full --model-config config.json"},
      .arguments =
          {{.name = "SRC",
            .help = "output folders that together hold every shard",
            .target = &args.sources,
            .required = true},
           replicas_argument(args.replicas),
           {.name = "--model-config",
            .value = "FILE",
            .help = "the model's config.json; it is written in place of the one beside the files",
            .target = &args.model_config}},
      .run = [&args](Session& session) { return run_merge(args, session); }};
  append(command.arguments, write_arguments(args.write));
  offer_whole_layouts(command.arguments);
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
