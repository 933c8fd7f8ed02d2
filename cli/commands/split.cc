#include "cli/commands/split.h"

#include "cli/args/share_args.h"
#include "cli/args/watch.h"
#include "cli/print/answer.h"

namespace shardtool::cli {
namespace {

ExitCode run_split(const SplitArgs& args, Session& session) {
  auto options = to_options(args);
  options.write.command_line = words_without_share(session.words());
  const auto report = [&] {
    const Watch watch(session, options.write.resources);
    return api::split(options);
  }();
  answer(session, "split", Status::kOk, report);
  return ExitCode::kSuccess;
}

}  // namespace

api::SplitOptions to_options(const SplitArgs& args) {
  return {.source = args.source,
          .mapping = to_mapping_choice(args.mapping, kMapping),
          .ranks = to_ranks(args.ranks),
          .write = to_write_options(args.write)};
}

Command split_command(SplitArgs& args) {
  Command command{
      .name = "split",
      .summary = "cut a checkpoint into files for every rank",
      .description =
          "Reads a whole checkpoint (safetensors, or torch's .bin, .pt, .pth and .ckpt) and "
          "writes, for every rank of the mesh, the shard of every tensor that it holds. The output "
          "has a "
          "manifest.json: merge, reshard and inspect need no mapping for it. Memory stays within "
          "--max-memory whatever the size. If every shard is one box without padding, "
          "torch.distributed.checkpoint reads the output, too (HuggingFaceStorageReader). "
          "--layout writes what an engine loads.",
      .examples = {"shardtool split models/llama-8b -o out/tp4 --mesh tp=4",
                   "shardtool split models/llama-8b -o out/vllm --tp 4 --layout vllm",
                   "shardtool split models/mixtral -o out -m mapping.json --dry-run",
                   "shardtool split models/llama-8b -o rank3 --tp 8 --rank 3"},
      .arguments = {{.name = "SRC",
                     .help = "a folder, an index.json, a .safetensors or a torch file",
                     .target = &args.source,
                     .required = true}},
      .run = [&args](Session& session) { return run_split(args, session); }};
  append(command.arguments, write_arguments(args.write));
  append(command.arguments, mapping_arguments(args.mapping, kMapping));
  append(command.arguments, rank_arguments(args.ranks));
  return command;
}

}  // namespace shardtool::cli
