#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/collective/collective.h"

namespace shardtool::plan {

/// Reduction that combines the values of a Partial tensor into the whole one.
enum class ReduceOp { kSum, kAvg, kMin, kMax };
std::string_view to_string(ReduceOp op);

/// Placement of one tensor along one mesh axis: every device has all of it, its part of one tensor
/// axis, a summand (or another operand of `op`) of all of it, or an unrelated value.
struct Placement {
  enum class Kind { kReplicated, kSharded, kPartial, kUnknown };
  Kind kind = Kind::kReplicated;
  int axis = 0;                  ///< for kSharded: the tensor axis; 0 otherwise
  ReduceOp op = ReduceOp::kSum;  ///< for kPartial; kSum otherwise

  static Placement replicated() { return {}; }
  static Placement sharded(int axis) { return {Kind::kSharded, axis}; }
  static Placement partial(ReduceOp op = ReduceOp::kSum) { return {Kind::kPartial, 0, op}; }
  static Placement unknown() { return {Kind::kUnknown}; }

  bool is(Kind other) const { return kind == other; }
  auto operator<=>(const Placement&) const = default;
};
/// Formats as "R", "S(0)", "P", "P(avg)", "U".
std::string to_string(const Placement& placement);

/// Move of a tensor between two placements along one mesh axis.
enum class Move {
  kNothing,
  kSlice,          ///< R -> S: keep a part
  kKeepOne,        ///< R -> P(sum): one device keeps its copy, the others have zeros
  kAllGather,      ///< S -> R
  kAllToAll,       ///< S(d) -> S(e)
  kAllReduce,      ///< P -> R
  kReduceScatter,  ///< P -> S
  kPermute,        ///< exchanges parts
  kImpossible,     ///< S -> P, between two ops, to or from Unknown
};
std::string_view to_string(Move move);
/// Collective that performs the move, or nullopt if no byte moves.
std::optional<CollectiveOp> collective_of(Move move);

Move move_between(const Placement& from, const Placement& to);

/// Collective of one move along a mesh axis of n devices. The group jointly owns `bytes` = V: the
/// tensor's bytes over the sizes of the other axes that cut it.
///
///     move            payload   every device sends and receives
///     all_gather      V         V (n-1) / n
///     reduce_scatter  V         V (n-1) / n
///     all_reduce      V         2 V (n-1) / n
///     all_to_all      V / n     V (n-1) / n^2
///
/// Nullopt for a move without a collective and for one device.
std::optional<Collective> collective_for(Move move, Group group, i64 bytes);

/// Placement of one tensor on a mesh.
///
/// P1 on[a] is its placement along mesh axis a; order[d] lists the mesh axes a with on[a] = S(d),
/// each once, major to minor
struct Placements {
  std::vector<Placement> on;
  std::vector<std::vector<int>> order;

  auto operator<=>(const Placements&) const = default;
};

/// Placements of a tensor of `rank` axes, mesh axes on one tensor axis in mesh order. Throws
/// kShapeMismatch for an axis that the tensor lacks.
Placements in_mesh_order(std::vector<Placement> on, int rank);
/// Placements of a tensor that every device has whole.
Placements replicated(const mesh::Mesh& mesh, int rank);

/// Number of parts into which tensor axis d is cut.
i64 parts(const Placements& placements, const mesh::Mesh& mesh, int d);

/// Formats as "[dp, tp], []  P on pp": the mesh axes of each tensor axis, then placements other
/// than R or S.
std::string to_string(const Placements& placements, const mesh::Mesh& mesh);

}  // namespace shardtool::plan
