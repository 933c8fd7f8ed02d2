#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::plan {

/// One move of a whole tensor, in every group along `mesh_axes` at once.
struct RedistributionStep {
  Move move = Move::kNothing;
  std::vector<int> mesh_axes;  ///< major to minor; for a permutation the changed axes
  int from_axis = -1;          ///< tensor axis that was cut; -1 if not cut
  int to_axis = -1;            ///< tensor axis that is cut; -1 if not cut
  i64 elements = 0;            ///< received by all devices together
  Placements after;
};

struct Redistribution {
  std::vector<RedistributionStep> steps;
  i64 elements = 0;  ///< received by all devices together
};

/// Finds the cheapest path of a tensor from one placement to another: fewest elements received over
/// all devices, then fewest steps. It is the shortest path (Dijkstra) over (placement per mesh
/// axis, order of the mesh axes on each tensor axis), so that costs are a metric:
///     cost(a, c) <= cost(a, b) + cost(b, c)
/// A step gathers or moves the innermost mesh axes of one tensor axis, slices or scatters to the
/// innermost position, reduces any Partial axes of one op together, or exchanges parts of equal
/// shapes. Every placement on the path cuts evenly.
///
/// Nullopt if there is no path: no step creates Unknown or Partial placements.
/// Throws kNotDivisible when `from` or `to` does not cut the shape evenly, kLimit on overflow.
std::optional<Redistribution> redistribute(const mesh::Mesh& mesh, const Shape& shape,
                                           const Placements& from, const Placements& to);

}  // namespace shardtool::plan
