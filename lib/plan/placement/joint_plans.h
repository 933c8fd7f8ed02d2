#pragma once

#include <memory>
#include <vector>

#include "lib/plan/placement/program.h"

/// The cheapest choices for all ops of a program together.
namespace shardtool::plan {

class NumberedOps;

/// The largest search of JointPlans, in states.
inline constexpr size_t kMostStates = 300'000;

/// Finds the fewest bytes for all ops together, with allowed moves only and moved values kept in
/// both placements: the shortest path over (op, placements of the values that later ops read).
/// Exponential in the number of live values, which is small in a block. A state is dropped if
/// another one of at most its bytes has all of its placements.
///
/// Keeps what it learnt of the ops from one search to the next. The program must outlive it.
class JointPlans {
 public:
  /// Throws kInternal for violations of P1.
  JointPlans(const Program& program, const AllowedMoves& allowed);
  JointPlans(const JointPlans&) = delete;
  JointPlans& operator=(const JointPlans&) = delete;
  ~JointPlans();

  /// Returns the cheapest plan; `entering` replaces placements of operands. Throws kPlacement if no
  /// allowed moves run all ops, kLimit above kMostStates.
  ProgramPlan cheapest(const Values& entering = {});
  /// Returns the cheapest plan for every combination of placements in which the kept values can be
  /// left for at most so many bytes, cheapest first. Throws kLimit above kMostStates.
  std::vector<ProgramPlan> exits(const Values& entering, i64 most);

 private:
  std::unique_ptr<NumberedOps> ops_;
};

/// Returns the cheapest plan of a program; see JointPlans.
ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed,
                          const Values& entering = {});

}  // namespace shardtool::plan
