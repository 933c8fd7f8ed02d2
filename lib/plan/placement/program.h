#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/plan/placement/solver.h"

/// Sequence of ops on placed values, to compare the total price of op-by-op decisions with that of
/// the cheapest joint choice.
namespace shardtool::plan {

struct ProgramOp {
  std::string op;  ///< for messages
  std::vector<std::string> in;
  std::vector<std::string> out;  ///< all placed alike
  std::vector<Shape> out_shapes;
  std::vector<OpRow> rows;
  bool bounds_result = false;  ///< out_shapes bound the cuts: no operand does
  i64 element_bytes = 2;       ///< of the results

  bool operator==(const ProgramOp&) const = default;
};

/// P1 every value is an operand or the result of an earlier op; names are unique
struct Program {
  mesh::Mesh mesh;
  std::vector<Operand> operands;
  std::vector<ProgramOp> ops;
  /// Values that are read after the program, each with its name there.
  std::vector<std::pair<std::string, std::string>> kept = {};
};

/// The placements in which every value is available.
using Values = std::map<std::string, std::set<std::vector<Placement>>>;

struct ProgramPlan {
  std::vector<ActionSet> sets;    ///< one per op, with the placements that its operands come from
  std::vector<Action> actions;    ///< one per op
  std::vector<Values> available;  ///< one per op: of its operands, before it
  i64 bytes = 0;                  ///< received by one device
  Values left;                    ///< of the kept values, by their later names
};

/// The choices for op number `op`, once for every combination of the placements in which its
/// operands are available. Throws kInternal for violations of P1.
std::vector<ActionSet> action_sets(const Program& program, size_t op, const Values& available,
                                   Parity parity);

/// Policy for a value that was moved for one op: available in the new placement to later ops or
/// not.
enum class Reuse { kNo, kYes };

/// Chooses the action of one op; `op` is its index in the program.
using Choose = std::function<Action(size_t op, const ActionSet& set)>;

/// Chooses every op with the solver alone, with the values as earlier ops left them. `entering`
/// replaces placements of operands. Throws the errors of the solver, kInternal for violations of
/// P1.
ProgramPlan plan_op_by_op(const Program& program, const Choose& choose, Parity parity, Reuse reuse,
                          const Values& entering = {});
ProgramPlan plan_op_by_op(const Program& program, const Solver& solver, Parity parity, Reuse reuse);

}  // namespace shardtool::plan
