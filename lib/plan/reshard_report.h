#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/plan/placement/solver.h"

namespace shardtool::plan {

/// Policy for operands that must move.
enum class OnReshard { kSilent, kWarn, kRaise };

/// One row along one mesh axis in the report.
struct CandidateLine {
  std::string axis;
  std::vector<std::string> operands;  ///< required placements
  std::string result;
  std::string collectives;  ///< "all_reduce x", or empty
  i64 bytes = 0;            ///< along this axis, for the chosen action with this row in it
  std::string status;       ///< "chosen", "chosen, moves", "infeasible", "not allowed", ""
  std::string why;          ///< for "infeasible" and "not allowed"
  /// Transfers that make the row legal without moves, if they are inserted before the op:
  /// "reduce_scatter y over tp to axis 1".
  std::vector<std::string> insert;
};

/// Explanation of an op's execution. Has a line for every row along every mesh axis: its price when
/// the other mesh axes keep their chosen rows, from the operands' placements that are cheapest for
/// it.
struct ReshardReport {
  std::string headline;  ///< "add moves 1 operand: 6,291,456 bytes per device"
  std::vector<CandidateLine> lines;
};

/// Reports the action, which is chosen of `set`. `sources` are the choices for other placements in
/// which the operands are available.
ReshardReport report_of(const ActionSet& set, const Action& action, const AllowedMoves& allowed,
                        std::span<const ActionSet> sources = {});

/// Applies the policy to an action: kWarn appends the headline to `warnings`, kRaise throws
/// kPlacement with the transfers to insert as notes when any operand moves, also by a free slice.
void apply(OnReshard policy, const ActionSet& set, const Action& action,
           std::vector<std::string>& warnings);
/// Chooses with the solver and applies the policy.
Action choose(const Solver& solver, const ActionSet& set, OnReshard policy,
              std::vector<std::string>& warnings);

}  // namespace shardtool::plan
