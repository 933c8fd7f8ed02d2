#include <string_view>

#include "cli/args/flag_rule.h"
#include "cli/args/plan_args.h"

namespace shardtool::cli {
namespace {

using PlanRule = FlagRule<PlanArgs>;

bool is_form(const PlanArgs& args, std::string_view word) {
  return !args.sources.empty() && args.sources.front() == word;
}
bool is_diff(const PlanArgs& args) {
  return is_form(args, "diff");
}
bool is_calibration(const PlanArgs& args) {
  return is_form(args, "profile") && args.sources.size() > 1 && args.sources[1] == "calibrate";
}
bool shows_profiles(const PlanArgs& args) {
  return is_form(args, "profile") && !is_calibration(args);
}
bool has_tokens(const PlanArgs& args) {
  return args.workload.prompt_len || args.workload.context;
}
bool has_memory(const PlanArgs& args) {
  return args.workload.budget || args.profile;
}
bool is_reshard(const PlanArgs& args) {
  return args.to || args.to_preset || args.to_mesh;
}

/// Flags that change no form of the report, the JSON document among them. The first rules are about
/// what is planned at all.
constexpr PlanRule kPlanRules[] = {
    {is_diff,
     "in `plan diff`",
     "give it to the plans that are compared",
     PlanRule::Of::kAllOthers,
     {"--format", "--html"}},
    {shows_profiles,
     "in `plan profile list` and `show`",
     "leave it out",
     PlanRule::Of::kAllOthers,
     {}},
    {is_calibration,
     "in `plan profile calibrate`",
     "leave it out",
     PlanRule::Of::kAllOthers,
     {"--output", "calibration"}},
    {[](const PlanArgs& args) { return !is_calibration(args); },
     "without `plan profile calibrate`",
     "it says how this machine is measured; a plan takes the result by --profile",
     PlanRule::Of::kThese,
     {"calibration"}},
    {[](const PlanArgs& args) { return args.ops.ops; },
     "with --ops",
     "leave it out, or plan without --ops",
     PlanRule::Of::kAllOthers,
     {"--batch", "--prompt-len", "--profile", "--graph", "--explain", "--format", "mapping",
      "op planner"}},
    {[](const PlanArgs& args) { return !args.ops.ops; },
     "without --ops",
     "add --ops, or leave it out",
     PlanRule::Of::kThese,
     {"op planner"}},
    {[](const PlanArgs& args) { return !args.ops.ops && !is_reshard(args); },
     "without a reshard",
     "say where it goes with --to, --to-preset or --to-mesh",
     PlanRule::Of::kThese,
     {"--from", "--explain", "--node-size", "--detailed-exitcode"}},
    {[](const PlanArgs& args) { return args.training.train; },
     "with --train",
     "it describes the load of a server; a training has --sequence and --micro-batch",
     PlanRule::Of::kThese,
     {"--batch", "--prompt-len", "--context", "--prefix-hit", "--kv-dtype", "--block-tokens"}},
    {[](const PlanArgs& args) { return !args.training.train; },
     "without --train",
     "add --train, or leave it out",
     PlanRule::Of::kThese,
     {"--zero", "--dp", "--optimizer", "--micro-batch", "--sequence", "--recompute",
      "--virtual-stages"}},
    {[](const PlanArgs& args) { return args.training.train && !args.training.sequence; },
     "without --sequence",
     "activations are counted for the tokens of a sequence, such as --sequence 4096",
     PlanRule::Of::kThese,
     {"--micro-batch", "--recompute", "--sequence-parallel"}},
    {[](const PlanArgs& args) { return !args.training.train && !args.workload.prompt_len; },
     "without --prompt-len or --train",
     "it cuts activations: give the tokens of a prompt, or --train and those of a --sequence",
     PlanRule::Of::kThese,
     {"--sequence-parallel"}},
    {[](const PlanArgs& args) { return !args.training.train && !args.workload.prompt_len; },
     "without --prompt-len",
     "give the tokens of a prompt, such as --prompt-len 1024",
     PlanRule::Of::kThese,
     {"--prefix-hit"}},
    {[](const PlanArgs& args) { return !has_tokens(args) && !has_memory(args); },
     "without --context, --prompt-len, --budget or --profile",
     "a cache is counted for the tokens that it holds, or for the memory that is left",
     PlanRule::Of::kThese,
     {"--block-tokens"}},
    {[](const PlanArgs& args) { return !has_memory(args); },
     "without --budget or --profile",
     "give the memory of a device, such as --budget 80GB",
     PlanRule::Of::kThese,
     {"--memory-fraction", "--fail-over-budget"}},
};

}  // namespace

void require_effects(const PlanArgs& args) {
  PlanArgs typed = args;
  require_effects<PlanArgs>(typed, plan_arguments(typed), kPlanRules);
}

}  // namespace shardtool::cli
