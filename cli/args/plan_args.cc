#include "cli/args/plan_args.h"

#include <fmt/format.h>

#include "cli/args/emit_args.h"
#include "cli/args/html_file.h"
#include "cli/size_argument.h"
#include "lib/api/catalogue/graphs.h"
#include "lib/api/catalogue/layouts.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/collective/profile_list.h"

namespace shardtool::cli {
namespace {

api::OwnClass own_class(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--class '{}' is not NAME=GLOB", quote_for_message(text)))
        .help("for example --class router=**.mlp.gate.weight");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Throws kUsage for a flag of the load of a server.
void require_no_load(const WorkloadArgs& args) {
  const std::pair<const char*, bool> kGiven[] = {
      {"--batch", args.batch.has_value()},       {"--prompt-len", args.prompt_len.has_value()},
      {"--context", args.context.has_value()},   {"--prefix-hit", args.prefix_hit.has_value()},
      {"--kv-dtype", args.kv_dtype.has_value()}, {"--block-tokens", args.block_tokens.has_value()}};
  for (const auto& [flag, is_given] : kGiven) {
    if (!is_given) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} describes the load of a server, and --train is "
                                               "about a training",
                                               flag))
        .help("a training has --sequence and --micro-batch");
  }
}

std::optional<api::TrainingPlan> to_training(const TrainingArgs& args) {
  if (!args.train) {
    const std::pair<const char*, bool> kGiven[] = {{"--zero", args.zero.has_value()},
                                                   {"--dp", args.dp.has_value()},
                                                   {"--optimizer", args.optimizer.has_value()},
                                                   {"--micro-batch", args.micro_batch.has_value()},
                                                   {"--sequence", args.sequence.has_value()},
                                                   {"--recompute", args.recompute.has_value()}};
    for (const auto& [flag, is_given] : kGiven) {
      if (is_given) throw Error(ErrorCode::kUsage, fmt::format("{} is a flag of --train", flag));
    }
    return std::nullopt;
  }
  constexpr i64 kLastStage = 3;
  api::TrainingPlan training;
  if (args.zero)
    training.zero_stage = static_cast<int>(parse_count("--zero", *args.zero, 0, kLastStage));
  training.data_parallel = count_or("--dp", args.dp, 1);
  if (args.optimizer == "momentum") training.state = plan::kMomentum;
  if (args.optimizer == "sgd") training.state = plan::kSgd;
  training.micro_batch = count_or("--micro-batch", args.micro_batch, 1);
  training.sequence = count_or("--sequence", args.sequence, 0);
  if (args.recompute == "selective") training.recompute = plan::Recompute::kSelective;
  if (args.recompute == "full") training.recompute = plan::Recompute::kFull;
  return training;
}

std::vector<Argument> reshard_arguments(PlanArgs& args) {
  return {
      {.name = "--to",
       .value = "LAYOUT",
       .help =
           "plan a reshard to a mapping file, or to an entry in the \"layouts\" of the source's "
           "mapping",
       .target = &args.to},
      {.name = "--to-preset",
       .value = "NAME",
       .help = "plan a reshard to a built-in mapping",
       .target = &args.to_preset,
       .offers = api::preset_names,
       .advanced = true},
      {.name = "--to-mesh",
       .value = "AXIS=N,...",
       .help = "plan a reshard to this mesh",
       .target = &args.to_mesh},
      {.name = "--layout",
       .value = "NAME",
       .help = "of the files that are planned: cuts and padding of the engine that loads them",
       .target = &args.layout,
       .choices = api::written_layouts(),
       .refused = api::read_only_layouts(),
       .advanced = true},
      {.name = "--from",
       .value = "LAYOUT",
       .help = "where the reshard begins, like --to; without it the shards as they are",
       .target = &args.from,
       .advanced = true},
      {.name = "--node-size",
       .value = "N",
       .help = "devices of one node, default 8",
       .target = &args.node_size,
       .advanced = true},
      {.name = "--explain",
       .value = "TENSOR",
       .help = "list who sends what of this tensor to whom",
       .target = &args.explain,
       .advanced = true},
      {.name = "--detailed-exitcode",
       .help = "exit 0 when nothing moves, 2 when something does, and 1 for what does not fit and "
               "for every error, in place of the exit codes below",
       .target = &args.detailed_exitcode,
       .advanced = true},
  };
}

std::vector<Argument> training_arguments(TrainingArgs& args) {
  return {
      {.name = "--train",
       .help = "count training: gradients and optimizer instead of a cache",
       .target = &args.train},
      {.name = "--zero",
       .value = "STAGE",
       .help = "of --train: ZeRO stage 0 to 3 over --dp, and over ep for all weights but experts",
       .target = &args.zero,
       .advanced = true},
      {.name = "--dp",
       .value = "N",
       .help = "of --train: replicas of the layout, each on devices of its own, default 1",
       .target = &args.dp,
       .advanced = true},
      {.name = "--optimizer",
       .value = "NAME",
       .help = "of --train: 12, 8 or 4 bytes of state per parameter; default adam",
       .target = &args.optimizer,
       .choices = {"adam", "momentum", "sgd"},
       .advanced = true},
      {.name = "--micro-batch",
       .value = "N",
       .help = "of --train: sequences of one micro-batch, default 1",
       .target = &args.micro_batch,
       .advanced = true},
      {.name = "--sequence",
       .value = "N",
       .help = "of --train: tokens of a sequence; without it no activations are counted",
       .target = &args.sequence,
       .advanced = true},
      {.name = "--sequence-parallel",
       .help =
           "activations between matrices are cut by tokens over tp: reduce_scatter and all_gather "
           "take the place of all_reduce",
       .target = &args.sequence_parallel,
       .advanced = true},
      {.name = "--recompute",
       .value = "WHAT",
       .help = "of --train: activations that the backward pass computes again, default none",
       .target = &args.recompute,
       .choices = {"none", "selective", "full"},
       .advanced = true},
  };
}

std::vector<Argument> price_arguments(PlanArgs& args) {
  return {
      {.name = "--what-if",
       .value = "N,N,...",
       .help = "the same on these numbers of devices",
       .target = &args.what_if},
      {.name = "--compare",
       .value = "MAPPING",
       .help = "another mapping file or preset in one line; repeatable",
       .target = &args.compare,
       .advanced = true},
      {.name = "--profile",
       .value = "NAME|FILE",
       .help = "the hardware: its memory is the budget, and a forward pass has a time",
       .target = &args.profile,
       .offers = plan::profile_names},
      {.name = "--graph",
       .value = "FILE",
       .help = "what the model computes, instead of its family's graph",
       .target = &args.graph,
       .advanced = true},
      {.name = "--class",
       .value = "NAME=GLOB",
       .help = "count these tensors as a class of their own; repeatable",
       .target = &args.classes,
       .advanced = true},
  };
}

std::vector<Argument> report_arguments(PlanArgs& args) {
  return {
      {.name = "--format",
       .value = "NAME",
       .help = "how the report is printed",
       .target = &args.format,
       .choices = {"text", "json", "md", "csv"}},
      {.name = "--output",
       .short_name = "-o",
       .value = "FILE",
       .help =
           "write the reshard's plan there, for `shardtool reshard --plan FILE`, or the profile",
       .target = &args.output},
      html_argument(args.html),
      emit_argument(args.emit),
      {.name = "--fail-over-budget",
       .help =
           "exit 1 when it does not fit the memory of --profile; with --budget this is the default",
       .target = &args.fail_over_budget,
       .advanced = true},
      {.name = "--exit-zero",
       .help = "exit 0 when it does not fit into --budget",
       .target = &args.exit_zero,
       .advanced = true},
  };
}

std::vector<Argument> calibrate_arguments(CalibrateArgs& args) {
  std::vector<Argument> arguments{
      {.name = "--ranks",
       .value = "N",
       .help = "of profile calibrate: ranks of the embedded engine, default 2",
       .target = &args.ranks,
       .advanced = true},
      {.name = "--size",
       .value = "SIZE",
       .help = "of profile calibrate: of the files that it writes and reads, default 256MiB",
       .target = &args.size,
       .advanced = true},
      {.name = "--rounds",
       .value = "N",
       .help = "of profile calibrate: measure everything N times, default 5",
       .target = &args.rounds,
       .advanced = true}};
  append(arguments, engine_arguments(args.engine));
  return arguments;
}

/// Throws kUsage for flags that change nothing without another one, which is not given.
void require_effects(const PlanArgs& args) {
  const WorkloadArgs& load = args.workload;
  const bool has_memory = load.budget || args.profile;
  const bool has_tokens = load.prompt_len || load.context;
  const struct {
    const char* flag;
    bool is_given;
    const char* other;
    bool is_other_given;
  } kPairs[] = {
      {"--fail-over-budget", args.fail_over_budget, "--budget or --profile", has_memory},
      {"--memory-fraction", load.memory_fraction.has_value(), "--budget or --profile", has_memory},
      {"--block-tokens", load.block_tokens.has_value(), "--context or --prompt-len", has_tokens},
      {"--prefix-hit", load.prefix_hit.has_value(), "--prompt-len", load.prompt_len.has_value()},
      {"--sequence-parallel", args.training.sequence_parallel, "--prompt-len or --train",
       load.prompt_len || args.training.train}};
  for (const auto& pair : kPairs) {
    if (!pair.is_given || pair.is_other_given) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{} does nothing without {}", pair.flag, pair.other));
  }
  refuse_both("--fail-over-budget", args.fail_over_budget, "--exit-zero", args.exit_zero);
}

}  // namespace

api::PlanOptions to_options(const PlanArgs& args) {
  if (args.calibrate.given()) {
    throw Error(ErrorCode::kUsage, "flags of `plan profile calibrate` are given to a plan");
  }
  if (args.ops.any()) {
    throw Error(ErrorCode::kUsage, "flags of the planner of ops are given without --ops");
  }
  api::PlanOptions options;
  options.sources = args.sources;
  options.mapping = to_mapping_choice(args.mapping, kMapping);
  const MappingArgs& typed = args.mapping;
  options.mapping_is_given =
      typed.file || typed.preset || typed.mesh || typed.tp || typed.ep || typed.pp || typed.axes;
  options.from = args.from;
  options.to = args.to;
  options.to_preset = args.to_preset.value_or("");
  refuse_both("--to", args.to.has_value(), "--to-preset", args.to_preset.has_value());
  if (args.to_mesh) options.to_mesh = mesh::parse_mesh(*args.to_mesh);
  options.mapping.engine_layout = args.layout.value_or("");
  if (!options.is_reshard() && (args.from || args.explain)) {
    throw Error(ErrorCode::kUsage, "--from and --explain are about a reshard, and there is none")
        .help("say where it goes with --to, --to-preset or --to-mesh");
  }
  if (!options.is_reshard() && args.detailed_exitcode) {
    throw Error(ErrorCode::kUsage,
                "--detailed-exitcode says what a reshard moves, and there is none")
        .help("say where it goes with --to, --to-preset or --to-mesh");
  }
  if (args.training.train) require_no_load(args.workload);
  options.workload = to_workload(args.workload);
  options.workload.sequence_parallel = args.training.sequence_parallel;
  options.device = to_budget(args.workload);
  require_effects(args);
  if (args.profile) use_hardware(*args.profile, args.workload, options);
  if (args.graph) options.graph = api::read_graph(*args.graph);
  options.training = to_training(args.training);
  for (const std::string& text : args.classes) options.classes.push_back(own_class(text));
  if (args.what_if) options.what_if = counts_of("--what-if", *args.what_if);
  options.compare = args.compare;
  options.node_size = count_or("--node-size", args.node_size, options.node_size);
  options.explain = args.explain.value_or("");
  options.recipe = args.output.has_value();
  return options;
}

api::OpPlanOptions to_ops_options(const PlanArgs& args) {
  const std::initializer_list<std::pair<const char*, bool>> kOthers{
      {"--to", args.to.has_value()},           {"--to-preset", args.to_preset.has_value()},
      {"--to-mesh", args.to_mesh.has_value()}, {"--from", args.from.has_value()},
      {"--layout", args.layout.has_value()},   {"--train", args.training.train},
      {"--what-if", args.what_if.has_value()}, {"--compare", !args.compare.empty()},
      {"--output", args.output.has_value()},   {"--format csv", args.format == "csv"},
      {"--format md", args.format == "md"},    {"--html", args.html.has_value()},
      {"--emit", args.emit.has_value()}};
  for (const auto& [flag, is_typed] : kOthers) refuse_both("--ops", true, flag, is_typed);
  api::OpPlanOptions options;
  options.sources = args.sources;
  options.mapping = to_mapping_choice(args.mapping, kMapping);
  const api::Workload workload = to_workload(args.workload);
  options.batch = workload.batch;
  options.prompt_len = std::max<i64>(workload.prompt_len, 1);
  if (args.graph) options.graph = api::read_graph(*args.graph);
  if (args.profile) options.hardware = api::load_profile(*args.profile);
  options.policies = to_policies(args.ops);
  options.compares = args.ops.compare_solvers;
  return options;
}

std::vector<Argument> plan_arguments(PlanArgs& args) {
  std::vector<Argument> arguments;
  append_group(arguments, "mapping", mapping_arguments(args.mapping, kMapping));
  append_group(arguments, "reshard", reshard_arguments(args));
  append_group(arguments, "workload", workload_arguments(args.workload));
  append_group(arguments, "training", training_arguments(args.training));
  append_group(arguments, "price", price_arguments(args));
  append_group(arguments, "report", report_arguments(args));
  append_group(arguments, "op planner", ops_arguments(args.ops));
  append_group(arguments, "calibration", calibrate_arguments(args.calibrate));
  return arguments;
}

}  // namespace shardtool::cli
