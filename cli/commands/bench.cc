#include "cli/commands/bench.h"

#include "cli/args/watch.h"
#include "cli/print/answer.h"
#include "cli/size_argument.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMaxRounds = 1000;

ExitCode run_bench(const BenchArgs& args, Session& session) {
  api::BenchIoOptions options = to_options(args);
  const auto report = [&] {
    const Watch watch(session, options.resources, "measuring");
    return api::bench_io(options);
  }();
  answer(session, "bench", Status::kOk, report);
  return ExitCode::kSuccess;
}

}  // namespace

api::BenchIoOptions to_options(const BenchArgs& args) {
  api::BenchIoOptions options;
  options.folder = args.folder;
  if (args.size) options.bytes = parse_size("--size", *args.size);
  if (args.rounds) options.rounds = parse_count("--rounds", *args.rounds, 1, kMaxRounds);
  set_resources(args.resources, options.resources);
  return options;
}

Command bench_command(BenchArgs& args) {
  Command command{
      .name = "bench",
      .summary = "measure this machine, and how near split comes to it",
      .description =
          "Makes a checkpoint in a hidden folder inside FOLDER, and measures in interleaved rounds "
          "what the machine does at best with as many bytes (copy, direct write, direct read, "
          "buffered read, digests) and what split does with them. Prints medians of "
          "the rates and of the CPU seconds per GB, and the "
          "fraction of every rate that split reached in the same round. Deletes everything "
          "again, also after Ctrl-C. Needs room for two copies.",
      .examples = {"shardtool bench io", "shardtool bench io /data --size 4GiB --rounds 9",
                   "shardtool bench io /data --json"},
      .arguments = {{.name = "WHAT",
                     .help = "io: reading, writing, digests",
                     .target = &args.what,
                     .required = true,
                     .choices = {"io"}},
                    {.name = "FOLDER",
                     .help = "on the file system to measure, default here",
                     .target = &args.folder},
                    {.name = "--size",
                     .value = "SIZE",
                     .help = "of the checkpoint, default 1GiB",
                     .target = &args.size},
                    {.name = "--rounds",
                     .value = "N",
                     .help = "measure everything N times, default 5",
                     .target = &args.rounds}},
      .run = [&args](Session& session) { return run_bench(args, session); }};
  append(command.arguments, resource_arguments(args.resources));
  return command;
}

}  // namespace shardtool::cli
