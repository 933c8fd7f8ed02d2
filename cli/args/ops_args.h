#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lib/api/planning/op_policy.h"

namespace shardtool::cli {

/// Flags of the planner of ops, as typed.
struct OpsArgs {
  bool ops = false;
  std::optional<std::string> solver = {};
  bool allow_partial_to_sharded = false;
  std::optional<std::string> on_reshard = {};
  std::optional<std::string> operand_budget = {};
  std::optional<std::string> generation = {};
  std::optional<std::string> policy = {};
  bool compare_solvers = false;
};

std::vector<Argument> ops_arguments(OpsArgs& args);
/// Throws kUsage.
api::OpPolicies to_policies(const OpsArgs& args);

}  // namespace shardtool::cli
