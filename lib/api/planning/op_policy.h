#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
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

/// Ways to run ops.
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
  bool operator==(const OpPolicy&) const = default;
};

/// One op of a model, as regions select it.
struct OpUse {
  std::string block;  ///< of its layer: "start", "decoder", "end"
  i64 layer = -1;     ///< -1 outside of a stack's layers
  std::string op;     ///< "linear"
  std::string makes;  ///< names of its results
};

/// A part of the ops with a policy of its own. Inside it the fields that it
/// sets replace those around it, and its own regions replace its.
struct OpRegion {
  std::string block = "*";  ///< shell patterns
  std::string op = "*";
  std::string makes = "*";
  std::vector<i64> layers;  ///< empty: all
  std::optional<OpSolver> solver;
  std::optional<bool> allow_partial_to_sharded;
  std::optional<plan::OnReshard> on_reshard;
  std::optional<i64> operand_budget;
  std::vector<OpRegion> regions;
  Place place;  ///< in the file that it was read from
};

/// Policies of a whole pass.
struct OpPolicies {
  OpPolicy policy;
  std::vector<OpRegion> regions;  ///< in order: a later one replaces an earlier one

  OpPolicy at(const OpUse& use) const;
  /// Throws kUnusedRule at a region that has none of a model's ops.
  void require_used(const std::vector<OpUse>& uses) const;
};

/// Reads a file of policies (shardtool-ops(5)). Throws kMappingSchema and
/// kMappingSyntax with places, and what store::read_text throws.
OpPolicies read_policies(const std::string& path);

std::string to_string(OpSolver solver);
std::string to_string(plan::Parity generation);

}  // namespace shardtool::api
