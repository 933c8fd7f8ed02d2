#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/placement/op_rules.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::plan {

/// A tensor that an op takes, where it lies now.
struct Operand {
  std::string name;  ///< for messages
  Shape shape;
  i64 element_bytes = 2;
  std::vector<Placement> on;  ///< per mesh axis
  /// Per tensor axis, the extents of its parts where they are not what kBalanced makes; empty
  /// elsewhere. kA to kC look at them, kExact at the shape.
  std::vector<std::vector<i64>> parts = {};
};

/// Whose decisions to take. kExact is shardtool's own; the others reproduce the source system's
/// generations, with what is wrong in them (see price_of and is_feasible), for comparison.
enum class Parity { kExact, kA, kB, kC, kD };

/// The ways to run one op on a mesh: along every mesh axis one of the rows.
///
/// A1 every row places every operand  A2 operands have one placement per mesh axis
struct ActionSet {
  std::string op;  ///< for messages
  mesh::Mesh mesh;
  std::vector<Operand> operands;
  std::vector<OpRow> rows;
  Shape
      result_shape;  ///< of an op whose result's extents bound its cuts (reshape); empty: no bound
  Parity parity = Parity::kExact;
};

/// Rows that are feasible along some mesh axis, and the all-Replicated row at the end where it is
/// not there (kD asks for it in the rows). Throws kPlacement for no rows and where A1 or A2 does
/// not hold.
ActionSet build_action_set(ActionSet all);

/// Whether a row can be taken along a mesh axis of n devices: every operand that it cuts along d
/// has extent > 1 there and at least n parts to give away, times the sizes of the other mesh axes
/// that cut d already; a result with result_shape likewise; and no operand's move is impossible. kA
/// to kC skip the size check for every operand once any is cut along an axis of that number, and of
/// unequal parts ask that the smallest has n.
bool is_feasible(const ActionSet& set, const OpRow& row, size_t mesh_axis);

/// The bytes that one device receives when the operands go where `rows` (one per mesh axis) need
/// them. kExact: each operand along its cheapest way (redistribute), in bytes of the groups that
/// own it; along the axes one by one where the cuts are uneven. kA to kD: B (n - 1) / n of the
/// whole tensor's bytes B (kA to kC of unequal parts as if all were as large as the first) for
/// all_gather, all_to_all and reduce_scatter alike, twice that for all_reduce, summed over mesh
/// axes; kD also B / (64 n) for a slice or a kept copy.
i64 price_of(const ActionSet& set, const std::vector<size_t>& rows);
/// The same of one row along one axis, by the formula of kA to kD.
i64 price_along(const ActionSet& set, const OpRow& row, size_t mesh_axis);

/// The operands' bytes on one device after the move, as if they were cut evenly.
i64 operand_bytes(const ActionSet& set, const std::vector<size_t>& rows);

/// Operands that change place along some mesh axis.
i64 moved_operands(const ActionSet& set, const std::vector<size_t>& rows);

}  // namespace shardtool::plan
