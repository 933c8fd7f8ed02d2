#include "cli/args/plan_args.h"

#include <fmt/format.h>

#include "cli/args/emit_args.h"
#include "cli/args/html_file.h"
#include "cli/size_argument.h"
#include "lib/api/catalogue/graphs.h"
#include "lib/api/catalogue/layouts.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/api/planning/virtual_stages.h"
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

std::optional<api::TrainingPlan> to_training(const TrainingArgs& args) {
  if (!args.train) return std::nullopt;
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
  training.virtual_stages = count_or("--virtual-stages", args.virtual_stages, 1);
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
       .help = "plan the files of this engine layout: its cuts and its padding",
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
       .help = "devices of one node, default 8, or those that --profile joins",
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
       .help = "plan a training: gradients and optimizer instead of a KV cache",
       .target = &args.train},
      {.name = "--zero",
       .value = "STAGE",
       .help = "with --train: ZeRO stage, 0 to 3, over the replicas of --dp; of weights that are "
               "no experts also over ep",
       .target = &args.zero,
       .advanced = true},
      {.name = "--dp",
       .value = "N",
       .help = "with --train: replicas of the layout, each on devices of its own, default 1",
       .target = &args.dp,
       .advanced = true},
      {.name = "--optimizer",
       .value = "NAME",
       .help = "with --train: adam, the default, with 12 bytes of state per parameter, momentum "
               "with 8, or sgd with 4",
       .target = &args.optimizer,
       .choices = {"adam", "momentum", "sgd"},
       .advanced = true},
      {.name = "--micro-batch",
       .value = "N",
       .help = "with --train: sequences of one micro-batch, default 1",
       .target = &args.micro_batch,
       .advanced = true},
      {.name = "--sequence",
       .value = "N",
       .help = "with --train: tokens of a sequence; without it no activations are counted",
       .target = &args.sequence,
       .advanced = true},
      {.name = "--sequence-parallel",
       .help = "cut activations between matrices by tokens over tp, so that reduce_scatter and "
               "all_gather replace all_reduce",
       .target = &args.sequence_parallel,
       .advanced = true},
      {.name = "--recompute",
       .value = "WHAT",
       .help = "with --train: activations that the backward pass computes again, default none",
       .target = &args.recompute,
       .choices = {"none", "selective", "full"},
       .advanced = true},
      {.name = "--virtual-stages",
       .value = "N",
       .help = "with --train: virtual pipeline stages of every rank of --pp, as in Megatron's "
               "interleaved schedule; default 1",
       .target = &args.virtual_stages,
       .advanced = true},
  };
}

std::vector<Argument> price_arguments(PlanArgs& args) {
  return {
      {.name = "--what-if",
       .value = "N,N,...",
       .help = "also plan for these numbers of devices, a line for each",
       .target = &args.what_if},
      {.name = "--compare",
       .value = "MAPPING",
       .help = "also plan with this mapping file or preset, in a line; repeatable",
       .target = &args.compare,
       .advanced = true},
      {.name = "--profile",
       .value = "NAME|FILE",
       .help = "the hardware: it gives the memory of a device, and the time of a forward pass",
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
       .help = "with profile calibrate: ranks of the embedded engine, default 2",
       .target = &args.ranks,
       .advanced = true},
      {.name = "--size",
       .value = "SIZE",
       .help =
           "with profile calibrate: size of the files that are written and read, default 256MiB",
       .target = &args.size,
       .advanced = true},
      {.name = "--rounds",
       .value = "N",
       .help = "with profile calibrate: measure everything N times, default 5",
       .target = &args.rounds,
       .advanced = true}};
  append(arguments, engine_arguments(args.engine));
  return arguments;
}

}  // namespace

api::PlanOptions to_options(const PlanArgs& args) {
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
  options.workload = to_workload(args.workload);
  options.workload.sequence_parallel = args.training.sequence_parallel;
  options.device = to_budget(args.workload);
  refuse_both("--fail-over-budget", args.fail_over_budget, "--exit-zero", args.exit_zero);
  if (args.profile) use_hardware(*args.profile, args.workload, options);
  if (args.graph) options.graph = api::read_graph(*args.graph);
  options.training = to_training(args.training);
  if (options.training) api::deal_layers(options.mapping, options.training->virtual_stages);
  for (const std::string& text : args.classes) options.classes.push_back(own_class(text));
  if (args.what_if) options.what_if = counts_of("--what-if", *args.what_if);
  options.compare = args.compare;
  options.node_size = count_or("--node-size", args.node_size, options.node_size);
  options.explain = args.explain.value_or("");
  options.recipe = args.output.has_value();
  return options;
}

api::OpPlanOptions to_ops_options(const PlanArgs& args) {
  for (const char* format : {"csv", "md"})
    refuse_both("--ops", true, fmt::format("--format {}", format), args.format == format);
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
