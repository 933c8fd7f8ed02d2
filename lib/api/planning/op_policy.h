#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/plan/placement/solver.h"
#include "lib/plan/reshard_report.h"

namespace shardtool::api {

/// Ways to choose how ops run.
enum class OpSolver {
  kGreedy,    ///< the cheapest moves, op by op
  kNone,      ///< no moves
  kPartials,  ///< only all_reduces of Partial operands
  kTogether,  ///< the cheapest moves of each layer
  kExact,     ///< the cheapest moves of the whole pass
};

/// How ops run.
struct OpPolicy {
  OpSolver solver = OpSolver::kGreedy;
  bool allow_partial_to_sharded = false;
  plan::OnReshard on_reshard = plan::OnReshard::kSilent;
  std::optional<i64> operand_budget;  ///< bytes of one op's operands on a device
  plan::Parity generation = plan::Parity::kExact;

  plan::AllowedMoves allowed() const;
  /// Solver for one op. Throws kInternal for kTogether and kExact.
  std::unique_ptr<plan::Solver> make() const;
  bool is_joint() const { return solver == OpSolver::kTogether || solver == OpSolver::kExact; }
};

/// Policies of a whole pass.
struct OpPolicies {
  OpPolicy policy;
};

std::string to_string(OpSolver solver);
std::string to_string(plan::Parity generation);

}  // namespace shardtool::api
