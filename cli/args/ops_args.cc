#include "cli/args/ops_args.h"

#include <algorithm>
#include <array>

#include "cli/args/mapping_args.h"
#include "cli/size_argument.h"

namespace shardtool::cli {
namespace {

constexpr auto kSolvers =
    std::to_array<std::string_view>({"greedy", "none", "partials", "together", "exact"});
constexpr auto kOnReshard = std::to_array<std::string_view>({"silent", "warn", "error"});
constexpr auto kGenerations = std::to_array<std::string_view>({"exact", "A", "B", "C", "D"});

/// Index of a word that the parser accepted; 0 if it was not typed.
template <class Enum, class Words>
Enum chosen(const std::optional<std::string>& typed, const Words& words) {
  if (!typed) return static_cast<Enum>(0);
  return static_cast<Enum>(std::ranges::find(words, *typed) - words.begin());
}

template <class Words>
std::vector<std::string> choices(const Words& words) {
  return {words.begin(), words.end()};
}

}  // namespace

std::vector<Argument> ops_arguments(OpsArgs& args) {
  return {
      {.name = "--ops",
       .help = "plan every op of the forward pass: where its operands lie, and what moves them",
       .target = &args.ops},
      {.name = "--solver",
       .value = "NAME",
       .help = "with --ops: how ops are planned: each by itself (greedy, the default), without "
               "moves (none), with sums of partial values only (partials), layer by layer "
               "(together), or all at once (exact)",
       .target = &args.solver,
       .choices = choices(kSolvers),
       .advanced = true},
      {.name = "--allow-partial-to-sharded",
       .help = "with --ops: a partial value may be scattered, instead of summed on every device",
       .target = &args.allow_partial_to_sharded,
       .advanced = true},
      {.name = "--on-reshard",
       .value = "WHAT",
       .help = "with --ops: what to do when an op has to move an operand, default silent",
       .target = &args.on_reshard,
       .choices = choices(kOnReshard),
       .advanced = true},
      {.name = "--operand-budget",
       .value = "SIZE",
       .help = "with --ops: memory of a device that the operands of one op may take",
       .target = &args.operand_budget,
       .advanced = true},
      {.name = "--generation",
       .value = "NAME",
       .help = "with --ops: count bytes as one of four generations of MAX did (A to D), for "
               "comparison; default exact",
       .target = &args.generation,
       .choices = choices(kGenerations),
       .advanced = true},
      {.name = "--policy",
       .value = "FILE",
       .help = "with --ops: a file of choices by block, layer and op, see shardtool-ops(5)",
       .target = &args.policy,
       .advanced = true},
      {.name = "--compare-solvers",
       .help = "with --ops: also find the cheapest plan of the whole pass, and list the ops that "
               "differ",
       .target = &args.compare_solvers,
       .advanced = true},
  };
}

api::OpPolicies to_policies(const OpsArgs& args) {
  api::OpPolicies policies;
  if (args.policy) {
    refuse_both("--policy", true, "--solver", args.solver.has_value());
    refuse_both("--policy", true, "--allow-partial-to-sharded", args.allow_partial_to_sharded);
    refuse_both("--policy", true, "--on-reshard", args.on_reshard.has_value());
    refuse_both("--policy", true, "--operand-budget", args.operand_budget.has_value());
    policies = api::read_policies(*args.policy);
  }
  api::OpPolicy& policy = policies.policy;
  policy.solver = chosen<api::OpSolver>(args.solver, kSolvers);
  policy.allow_partial_to_sharded = args.allow_partial_to_sharded;
  policy.on_reshard = chosen<plan::OnReshard>(args.on_reshard, kOnReshard);
  policy.generation = chosen<plan::Parity>(args.generation, kGenerations);
  if (args.operand_budget) {
    policy.operand_budget = parse_size("--operand-budget", *args.operand_budget);
  }
  return policies;
}

}  // namespace shardtool::cli
