#pragma once

#include <string>
#include <vector>

#include "lib/plan/placement/solver.h"

/// Sequence of ops on placed values, to compare the total price of op-by-op decisions with that of
/// the cheapest joint choice.
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
  i64 bytes = 0;                ///< received by one device
};

/// Policy for a value that was moved for one op: available in the new placement to later ops or
/// not.
enum class Reuse { kNo, kYes };

/// Chooses every op with the solver alone, with the values as earlier ops left them. Throws the
/// errors of the solver, kInternal for violations of P1.
ProgramPlan plan_op_by_op(const Program& program, const Solver& solver, Parity parity, Reuse reuse);

/// Finds the fewest bytes for all ops together, with allowed moves only and moved values kept in
/// both placements: the shortest path over (op, placements of the values that later ops read).
/// Exponential in the number of live values, which is small in a block. Throws kPlacement if no
/// allowed moves run all ops.
ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed);

}  // namespace shardtool::plan
