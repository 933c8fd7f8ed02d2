#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/placement/op_rules.h"
#include "lib/plan/placement/placement.h"
#include "lib/plan/placement/redistribute.h"

namespace shardtool::plan {

/// Tensor operand of an op in its current placement.
struct Operand {
  std::string name;  ///< for messages
  Shape shape;
  i64 element_bytes = 2;
  std::vector<Placement> on;  ///< per mesh axis
  /// Extents of the parts per tensor axis if they differ from kBalanced; otherwise empty. kA to kC
  /// use them, kExact uses the shape.
  std::vector<std::vector<i64>> parts = {};

  bool operator==(const Operand&) const = default;
};

/// Decision rules. kExact is shardtool's own; the others reproduce generations of the source
/// system, including their errors (see price_of and is_feasible), for comparison.
enum class Parity { kExact, kA, kB, kC, kD };

/// Choices for one op on a mesh: one of the rows along every mesh axis.
///
/// A1 every row places every operand  A2 operands have one placement per mesh axis
struct ActionSet {
  std::string op;  ///< for messages
  mesh::Mesh mesh;
  std::vector<Operand> operands;
  std::vector<OpRow> rows;
  Shape result_shape;  ///< bounds the cuts of a result without operands; empty: no bound
  Parity parity = Parity::kExact;
};

/// Keeps rows that are feasible along some mesh axis, and appends the all-Replicated row if it is
/// missing (kD requires it among the rows). Throws kPlacement for an empty list of rows and for
/// violations of A1 or A2.
ActionSet build_action_set(ActionSet all);

/// Reasons why a row is impossible along a mesh axis.
enum class Feasibility {
  kPossible,
  kNoMove,          ///< no move makes an operand Partial, or moves an Unknown one
  kTooFewParts,     ///< an operand has fewer parts than devices
  kUnequalAverage,  ///< an average of parts of different sizes
  kResultTooSmall,  ///< the result has fewer parts than devices
};
std::string_view to_string(Feasibility feasibility);
Feasibility feasibility(const ActionSet& set, const OpRow& row, size_t mesh_axis);

/// True if a row is allowed along a mesh axis of n devices: every operand that it cuts along d has
/// extent > 1 there and at least n parts, times the sizes of the other mesh axes that already cut
/// d; a result with result_shape likewise; and no operand's move is impossible. kA to kC skip the
/// size check for every operand once any is cut along an axis of that number, and for unequal parts
/// require that the smallest has n.
bool is_feasible(const ActionSet& set, const OpRow& row, size_t mesh_axis);

/// Bytes that one device receives when the operands move to the placements of `rows` (one per mesh
/// axis). kExact: each operand by its cheapest path (redistribute), in bytes of the groups that own
/// it; axis by axis for uneven cuts. kA to kD: B (n - 1) / n of the whole tensor's bytes B (kA to
/// kC treat unequal parts as if all were as large as the first) for all_gather, all_to_all and
/// reduce_scatter alike, twice that for all_reduce, summed over mesh axes; kD also B / (64 n) for a
/// slice or a kept copy.
i64 price_of(const ActionSet& set, const std::vector<size_t>& rows);
/// The same for one operand and the placement `to`, with kExact.
i64 price_of_operand(const ActionSet& set, size_t operand, const std::vector<Placement>& to);
/// Price of one row along one axis, by the formula of kA to kD.
i64 price_along(const ActionSet& set, const OpRow& row, size_t mesh_axis);

/// Cheapest path of an operand to new placements; nullopt if the set prices axis by axis.
std::optional<Redistribution> path_of(const ActionSet& set, size_t operand,
                                      const std::vector<Placement>& to);
/// Price of moving an operand along one mesh axis, where a price is by axis.
struct AxisPrice {
  size_t mesh_axis = 0;
  i64 owned = 0;  ///< bytes that a group along the axis owns
  i64 bytes = 0;
};
std::vector<AxisPrice> axis_prices(const ActionSet& set, size_t operand,
                                   const std::vector<Placement>& to);

/// Bytes of the operands on one device after the move, assuming even cuts.
i64 operand_bytes(const ActionSet& set, const std::vector<size_t>& rows);

/// Number of operands that move along some mesh axis.
i64 moved_operands(const ActionSet& set, const std::vector<size_t>& rows);

}  // namespace shardtool::plan
