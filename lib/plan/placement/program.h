#pragma once

#include <string>
#include <vector>

#include "lib/plan/placement/solver.h"

/// Ops one after the other on placed values: what a solver that decides op by op pays for all of
/// them, and what the cheapest choice for all of them together is.
namespace shardtool::plan {

struct ProgramOp {
  std::string op;  ///< for messages
  std::vector<std::string> in;
  std::string out;
  Shape out_shape;
  std::vector<OpRow> rows;
  bool bounds_result = false;  ///< out_shape bounds the cuts (reshape)
};

/// P1 every value is an operand or the result of an earlier op; names are unique
struct Program {
  mesh::Mesh mesh;
  std::vector<Operand> operands;
  std::vector<ProgramOp> ops;
};

struct ProgramPlan {
  std::vector<Action> actions;  ///< one per op
  i64 bytes = 0;                ///< that one device receives
};

/// Whether a value that was moved for one op is still there so for the next.
enum class Reuse { kNo, kYes };

/// Every op by the solver alone, with the values as the ops before left them. Throws what the
/// solver throws, kInternal where P1 does not hold.
ProgramPlan plan_op_by_op(const Program& program, const Solver& solver, Parity parity, Reuse reuse);

/// The fewest bytes for all ops together, moves as allowed, values that were moved kept in both
/// places: the shortest path over (op, placements of the values that later ops read). Exponential
/// in the values that live at a time, which are few in a block. Throws kPlacement where nothing is
/// allowed.
ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed);

}  // namespace shardtool::plan
