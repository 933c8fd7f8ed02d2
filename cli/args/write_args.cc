#include "cli/args/write_args.h"

#include "cli/args/mapping_args.h"
#include "cli/args/share_args.h"
#include "cli/launch.h"
#include "cli/size_argument.h"
#include "lib/api/catalogue/layouts.h"
#include "lib/api/transfer/cast_values.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMaxThreads = 1024;
constexpr i64 kMaxRank = (i64{1} << 31) - 2;

/// Arguments that decide what is done, and not what is written.
std::vector<Argument> run_arguments(WriteArgs& args) {
  return {
      {.name = "--dry-run",
       .short_name = "-n",
       .help = "check everything but the values, write nothing",
       .target = &args.dry_run},
      {.name = "--force",
       .help = "replace an earlier output: its whole folder, with every file in it",
       .target = &args.force},
      {.name = "--resume",
       .help = "go on with what an interrupted run of the same command left; a complete output is "
               "compared with the source",
       .target = &args.resume},
      {.name = "--share",
       .value = "I/N",
       .help = "move only share I of N of the bytes, counted from 0; auto and auto/N take the "
               "number that the scheduler gives (mpirun, srun, torchrun, a Slurm array from 0, an "
               "indexed job of Kubernetes, or RANK and WORLD_SIZE)",
       .target = &args.share,
       .of_process = true},
      {.name = "--verify",
       .help = "read the output back and compare every shard with its hash; also one that --resume "
               "finds complete",
       .target = &args.verify,
       .advanced = true},
  };
}

}  // namespace

std::vector<Argument> resource_arguments(ResourceArgs& args) {
  return {
      {.name = "--max-memory",
       .value = "SIZE",
       .help = "memory for buffers, at least 4MiB, default 64MiB, with object stores 512MiB; "
               "headers come on top",
       .target = &args.max_memory,
       .environment = "SHARDTOOL_MAX_MEMORY",
       .advanced = true,
       .of_process = true},
      {.name = "--threads",
       .short_name = "-j",
       .value = "N",
       .help = "threads, default chosen from the machine",
       .target = &args.threads,
       .environment = "SHARDTOOL_THREADS",
       .advanced = true,
       .of_process = true},
  };
}

std::vector<Argument> write_arguments(WriteArgs& args) {
  std::vector<Argument> arguments{
      {.name = "--output",
       .short_name = "-o",
       .value = "FOLDER",
       .help = "the folder to write; it appears complete or not at all",
       .target = &args.output,
       .required = true,
       .of_process = true},  // the same for all processes of one launch
      {.name = "--layout",
       .value = "NAME",
       .help = "form of the files: plain (the default, whatever form SRC has), or what an engine "
               "loads, see `shardtool layouts`",
       .target = &args.layout,
       .choices = api::written_layouts(),
       .refused = api::read_only_layouts()},
      {.name = "--dtype",
       .value = "TYPE",
       .help = "cast all floats, rounding to nearest even; counts what is lost",
       .target = &args.dtype,
       .choices = {"bf16", "f16", "f32"}},
      {.name = "--dequantize",
       .help = "unpack quantised weights to the type of --dtype, or that of config.json, or bf16",
       .target = &args.dequantize},
      {.name = "--max-file-size",
       .value = "SIZE",
       .help = "size above which a new file begins, default 50GB",
       .target = &args.max_file_size},
      {.name = "--io",
       .value = "HOW",
       .help = "buffered goes through the page cache, direct past it; auto chooses for each read",
       .target = &args.io,
       .choices = {"auto", "buffered", "direct"},
       .advanced = true,
       .of_process = true},
      {.name = "--hash",
       .value = "NAME",
       .help = "hashes to record: xxh3 of every shard, or also sha256 of every file, as the hub "
               "shows it, for which the output is read once more",
       .target = &args.hash,
       .choices = {"xxh3", "sha256"},
       .advanced = true},
      {.name = "--no-copy-side-files",
       .help = "do not copy config, tokenizer and other files. By default every file directly in "
               "SRC is copied, except weights and hidden files. Without config.json, later "
               "commands need --model-config",
       .target = &args.no_copy_side_files,
       .advanced = true},
  };
  append(arguments, run_arguments(args));
  append(arguments, resource_arguments(args.resources));
  return arguments;
}

std::vector<Argument> rank_arguments(RankArgs& args) {
  return {
      {.name = "--ranks",
       .value = "LIST",
       .help = "write the shards of these ranks only, like 0-3,7",
       .target = &args.ranks},
      {.name = "--rank",
       .value = "N",
       .help = "write the shards of one rank only",
       .target = &args.rank},
  };
}

api::WriteOptions to_write_options(const WriteArgs& args) {
  api::WriteOptions options;
  options.output = args.output;
  options.layout = args.layout;
  if (args.max_file_size)
    options.max_file_size = parse_size("--max-file-size", *args.max_file_size);
  if (args.dtype) options.dtype = api::cast_type(*args.dtype);
  options.dequantize = args.dequantize;
  set_resources(args.resources, options.resources);
  options.force = args.force;
  options.resume = args.resume;
  options.verify = args.verify;
  options.dry_run = args.dry_run;
  options.copy_other_files = !args.no_copy_side_files;
  options.share = to_share(args.share, process_variables());
  if (options.share) speak();
  if (args.io == "buffered") options.io = exec::IoMode::kBuffered;
  if (args.io == "direct") options.io = exec::IoMode::kDirect;
  options.sha256 = args.hash == "sha256";
  return options;
}

std::vector<i64> to_ranks(const RankArgs& args) {
  refuse_both("--ranks", args.ranks.has_value(), "--rank", args.rank.has_value());
  if (args.rank) return {parse_count("--rank", *args.rank, 0, kMaxRank)};
  if (args.ranks) return parse_ranks("--ranks", *args.ranks);
  return {};
}

void set_resources(const ResourceArgs& args, exec::Resources& resources) {
  if (args.max_memory) {
    resources.max_memory = parse_size("--max-memory", *args.max_memory);
    resources.store_memory = resources.max_memory;
  }
  if (args.threads) {
    resources.threads = static_cast<int>(parse_count("--threads", *args.threads, 1, kMaxThreads));
  }
}

}  // namespace shardtool::cli
