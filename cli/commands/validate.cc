#include "cli/commands/validate.h"

#include <fmt/format.h>

#include <limits>
#include <ranges>

#include "cli/args/html_file.h"
#include "cli/args/mapping_args.h"
#include "cli/args/share_args.h"
#include "cli/args/watch.h"
#include "cli/launch.h"
#include "cli/print/validate.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "cli/size_argument.h"
#include "lib/api/catalogue/graphs.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr i64 kDefaultTokens = 8;

/// Leaves a negative verdict to the first process of a launch, which prints it. A launcher ends all
/// once one has failed, maybe before that.
ExitCode said_by_first(ExitCode verdict) {
  return follows() ? ExitCode::kSuccess : verdict;
}

/// Returns how the processes of a launch meet. Shares do not, nor does the process that plays all
/// devices.
std::optional<comm::EngineChoice> meeting_of(const ValidateArgs& args) {
  if (args.share || args.engine.is_gpu_virtual()) return std::nullopt;
  return to_engine(args.engine);
}

ExitCode run_demo(const ValidateArgs& args, Session& session) {
  api::DemoRunOptions options;
  before_meeting(meeting_of(args), [&] { options = to_demo_options(args); });
  const Interruptible work(catch_interrupts());
  const auto report = api::run_demo(options);
  const bool passed = report.demo.passed;
  if (session.json() || args.format == "json") {
    session.document("validate_demo", passed ? Status::kOk : Status::kFindings,
                     [&report](JsonWriter& json) { write_fields(json, report); });
  } else if (args.format == "md") {
    session.out().write(markdown(report));
  } else {
    print_text(session, report);
  }
  return said_by_first(passed ? ExitCode::kSuccess : ExitCode::kNegative);
}

api::ValidateReport validated(api::ValidateOptions& options, Session& session) {
  const Watch watch(session, options.resources, "reading");
  return api::validate_and_join(options);
}

ExitCode run_validate(const ValidateArgs& args, Session& session) {
  if (args.demo) return run_demo(args, session);
  api::ValidateOptions options;
  before_meeting(meeting_of(args), [&] {
    require_page_place(args.html, args.shards);
    options = to_options(args);
  });
  const auto report = validated(options, session);
  write_page(args.html, "validate", status_of(report),
             [&report](JsonWriter& json) { write_fields(json, report); });
  const ExitCode verdict = give_verdict(session, report, args.format.value_or("text"));
  return report.share ? verdict : said_by_first(verdict);
}

/// Flags of the inputs to compare.
std::vector<Argument> source_arguments(ValidateArgs& args) {
  return {{.name = "SHARDS",
           .help = "outputs of one split, or files whose names number ranks",
           .target = &args.shards},
          {.name = "--reference",
           .short_name = "-r",
           .value = "CKPT",
           .help = "the unsharded model; without it the shards are compared with their manifest, "
                   "and with the model that they merge to",
           .target = &args.reference},
          {.name = "--mapping",
           .short_name = "-m",
           .value = "FILE",
           .help = "the layout, instead of the manifest's; needed where there is none",
           .target = &args.mapping},
          {.name = "--axes",
           .value = "NAME",
           .help = "an entry of the mapping's \"layouts\"; the manifest records that of the split",
           .target = &args.axes,
           .advanced = true},
          {.name = "--model-config",
           .value = "FILE",
           .help = "the model's config.json, instead of the one beside the shards",
           .target = &args.config},
          {.name = "--graph",
           .value = "FILE",
           .help = "what the model computes, instead of its family's graph",
           .target = &args.graph}};
}

/// Flags of the proof's tiers.
std::vector<Argument> proof_arguments(ValidateArgs& args) {
  return {
      {.name = "--quick", .help = "headers and exact arithmetic, no f64", .target = &args.quick},
      {.name = "--ordered",
       .help =
           "also in f32 and bf16, the unsharded model summed as the shards: equal bits are a proof",
       .target = &args.ordered},
      {.name = "--native",
       .help = "also in the weights' type, as engines compute: how much more the shards round",
       .target = &args.native},
      {.name = "--golden",
       .value = "FILE",
       .help = "also hold the unsharded model in f32 against what another program computed",
       .target = &args.golden},
      {.name = "--values",
       .help = "compare values, not bits: for a reference of another dtype, which is cast and "
               "unpacked as the manifest records",
       .target = &args.values},
      {.name = "--require-coverage",
       .value = "PERCENT",
       .help = "fail when fewer percent of the tensors affect a result",
       .target = &args.require_coverage},
      {.name = "--seed",
       .value = "N",
       .help = "seed of the random inputs, default 1",
       .target = &args.seed,
       .advanced = true},
      {.name = "--tokens",
       .value = "N",
       .help = "tokens of each run in floats, default 8",
       .target = &args.tokens,
       .advanced = true}};
}

/// Flags of one of several processes that validate together.
std::vector<Argument> share_arguments(ValidateArgs& args) {
  return {{.name = "--share",
           .value = "I/N",
           .help = "run only share I of N of the layers, counted from 0; auto and auto/N take the "
                   "number that the scheduler gives (mpirun, srun, torchrun, a Slurm array from 0, "
                   "an indexed job of Kubernetes, or RANK and WORLD_SIZE)",
           .target = &args.share,
           .of_process = true},
          {.name = "--output",
           .short_name = "-o",
           .value = "FOLDER",
           .help = "for --share: where shares leave their verdicts, a folder that all see or "
                   "s3://bucket/prefix; the last one reports on all",
           .target = &args.verdicts}};
}

/// Flags of a demo that replaces the shards.
std::vector<Argument> demo_arguments(ValidateArgs& args) {
  return {{.name = "--demo",
           .value = "NAME",
           .help = "instead of shards: a small model in every sharding, forward and backward",
           .target = &args.demo,
           .choices = {"mlp"}},
          {.name = "--ranks",
           .value = "N",
           .help = "ranks of the demo; 4 when absent",
           .target = &args.ranks},
          {.name = "--sizes",
           .value = "IN,HIDDEN,OUT,BATCH",
           .help = "of the demo's model; small and uneven when absent",
           .target = &args.sizes}};
}

/// Parses "IN,HIDDEN,OUT,BATCH".
tutorial::DemoSizes to_sizes(const std::string& text) {
  constexpr i64 kMostFeatures = 1 << 16;
  tutorial::DemoSizes sizes;
  std::vector<std::string> words;
  for (const auto word : std::views::split(text, ',')) words.emplace_back(word.begin(), word.end());
  if (words.size() != 4) {
    throw Error(ErrorCode::kUsage, "--sizes takes four numbers")
        .note("found", quote_for_message(text))
        .help("--sizes 12,22,9,10 are inputs, hidden units, outputs and rows of the batch");
  }
  i64* const targets[] = {&sizes.in, &sizes.hidden, &sizes.out, &sizes.batch};
  for (size_t i = 0; i < words.size(); ++i) {
    *targets[i] = parse_count("--sizes", words[i], 1, kMostFeatures);
  }
  return sizes;
}

/// Sets the engine and the seed, for shards and demos alike.
template <class Options>
void set_devices(const ValidateArgs& args, Options& options) {
  constexpr i64 kMostSeed = std::numeric_limits<i64>::max();
  options.engine = to_engine(args.engine);
  options.gpu_virtual = args.engine.is_gpu_virtual();
  if (args.seed) {
    options.seed = static_cast<std::uint64_t>(parse_count("--seed", *args.seed, 0, kMostSeed));
  }
}

/// Sets the share and where it leaves its verdict. A share runs alone, whatever launched it.
void set_share(const ValidateArgs& args, api::ValidateOptions& options) {
  if (!args.share && !args.verdicts) return;
  if (!args.share) throw Error(ErrorCode::kUsage, "--output is for --share");
  if (!args.verdicts) {
    throw Error(ErrorCode::kUsage, "--share does not say where the shares leave their verdicts")
        .help("give all of them the same folder, such as -o verdicts");
  }
  options.share = to_share(args.share, process_variables());
  require_apart(*args.verdicts, args.shards);
  options.verdicts = *args.verdicts;
  speak();
  options.engine.launch.reset();
  if (options.engine.chosen() != comm::Engine::kEmbedded) {
    throw Error(ErrorCode::kUsage, "a share runs in one process")
        .note("found", fmt::format("--engine {}", *args.engine.engine))
        .help("leave --engine away, or start the processes without --share");
  }
}

}  // namespace

api::DemoRunOptions to_demo_options(const ValidateArgs& args) {
  if (args.shards.size() > 1 || !args.reference.empty() || args.graph) {
    throw Error(ErrorCode::kUsage, "a demo makes its own shards and reference")
        .help("give at most one checkpoint, with layer_0/weights and layer_1/weights");
  }
  const std::initializer_list<std::pair<const char*, bool>> kOthers{
      {"--mapping", args.mapping.has_value()},
      {"--axes", args.axes.has_value()},
      {"--model-config", args.config.has_value()},
      {"--golden", !args.golden.empty()},
      {"--native", args.native},
      {"--ordered", args.ordered},
      {"--values", args.values},
      {"--quick", args.quick},
      {"--tokens", args.tokens.has_value()},
      {"--require-coverage", args.require_coverage.has_value()},
      {"--share", args.share.has_value()},
      {"--output", args.verdicts.has_value()},
      {"--html", args.html.has_value()}};
  for (const auto& [flag, is_typed] : kOthers) refuse_both("--demo", true, flag, is_typed);
  api::DemoRunOptions options;
  if (args.ranks) {
    options.ranks = static_cast<int>(parse_count("--ranks", *args.ranks, 1, kMostRanks));
  }
  if (args.sizes) options.sizes = to_sizes(*args.sizes);
  if (!args.shards.empty()) options.checkpoint = args.shards.front();
  set_devices(args, options);
  return options;
}

api::ValidateOptions to_options(const ValidateArgs& args) {
  if (args.shards.empty()) {
    throw Error(ErrorCode::kUsage, "there are no shards to validate")
        .help("give the output of `shardtool split`, or --demo mlp");
  }
  if (args.ranks) {
    throw Error(ErrorCode::kUsage, "--ranks is for --demo: shards say how many ranks they have");
  }
  if (args.sizes) throw Error(ErrorCode::kUsage, "--sizes is for --demo: shards have sizes");
  api::ValidateOptions options;
  options.sources = args.shards;
  options.reference = args.reference;
  if (args.mapping) options.mapping.path = *args.mapping;
  if (args.axes) options.mapping.layout = *args.axes;
  if (args.config) options.mapping.config = *args.config;
  if (args.graph) options.graph = api::read_graph(*args.graph);
  options.golden = args.golden;
  set_devices(args, options);
  refuse_both("--quick", args.quick, "--native", args.native);
  options.quick = args.quick;
  options.ordered = args.ordered;
  options.native = args.native;
  options.compares_values = args.values;
  options.tokens =
      args.tokens ? parse_count("--tokens", *args.tokens, 1, api::kMostTokens) : kDefaultTokens;
  if (args.require_coverage) {
    options.require_coverage =
        static_cast<double>(parse_count("--require-coverage", *args.require_coverage, 0, 100));
  }
  set_share(args, options);
  set_resources(args.resources, options.resources);
  return options;
}

Command validate_command(ValidateArgs& args) {
  Command command{
      .name = "validate",
      .summary = "run the model sharded and unsharded, and compare exactly",
      .description =
          "Runs one forward pass layer by layer, on every rank's shards and unsharded, and "
          "compares the results of every op: in exact arithmetic modulo 2^61 - 1, where a sum has "
          "no order and one wrong bit of one weight shows, and in f64. It runs the collectives and "
          "masks that an engine needs for this layout, and counts them. Every row of the embedding "
          "and every expert is used. Memory stays within the budget, whatever the model. An "
          "unsharded checkpoint, such as one of --layout dcp, is compared with the reference. With "
          "--share, each of several machines runs some of the layers, without a connection between "
          "them; the last one, or `shardtool finish`, gives the verdict on all. Exits 0 when all "
          "results agree and 1 when some do not, naming the layer, the tensor, the rank and what "
          "is there instead.",
      .examples = {"shardtool validate out/tp4 --reference models/llama-8b",
                   "shardtool validate out/tp4 --reference models/llama-8b --quick",
                   "shardtool validate out/tp4 --require-coverage 100 --json",
                   "mpirun -n 4 shardtool validate out/tp4 --reference models/llama-8b",
                   "shardtool validate out/tp4 --reference models/llama-8b --engine gpu-virtual",
                   "shardtool validate out/tp4 --reference models/llama-8b --share 0/8 -o verdicts",
                   "shardtool validate --demo mlp",
                   "shardtool validate --demo mlp --engine gpu-virtual"},
      .arguments = source_arguments(args),
      .run = [&args](Session& session) { return run_validate(args, session); },
      .meeting = [&args] { return meeting_of(args); }};
  append(command.arguments, proof_arguments(args));
  append(command.arguments, share_arguments(args));
  command.arguments.push_back(
      {.name = "--format",
       .value = "FORMAT",
       .help = "how the report is printed, md as a comment for a pull request",
       .target = &args.format,
       .choices = {"text", "json", "md"}});
  command.arguments.push_back(html_argument(args.html));
  append(command.arguments, demo_arguments(args));
  std::vector<Argument> engine = engine_arguments(args.engine);
  engine.front().advanced = false;
  engine.front().choices.emplace_back(kGpuVirtual);
  append(command.arguments, engine);
  append(command.arguments, resource_arguments(args.resources));
  return command;
}

}  // namespace shardtool::cli
