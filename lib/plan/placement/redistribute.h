#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::plan {

/// One move of a whole tensor, of every group along `mesh_axes` at once.
struct RedistributionStep {
  Move move = Move::kNothing;
  std::vector<int> mesh_axes;  ///< major to minor; for a permutation those that change
  int from_axis = -1;          ///< tensor axis that was cut; -1: none
  int to_axis = -1;            ///< tensor axis that is cut; -1: none
  i64 elements = 0;            ///< that all devices receive together
  Placements after;
};

struct Redistribution {
  std::vector<RedistributionStep> steps;
  i64 elements = 0;  ///< that all devices receive together
};

/// The cheapest way to bring a tensor from one placement to another: fewest elements received over
/// all devices, then fewest steps. It is the shortest path (Dijkstra) over (placement per mesh
/// axis, order of the mesh axes on each tensor axis), so that costs are a metric:
///     cost(a, c) <= cost(a, b) + cost(b, c)
/// A step gathers or moves the innermost mesh axes of one tensor axis, slices or scatters to the
/// innermost place, reduces any Partial axes of one op together, or lets parts of equal shapes
/// change places. Every placement on the way cuts evenly.
///
/// Nothing where no way exists: Unknown and Partial placements are never made.
/// Throws kNotDivisible when `from` or `to` does not cut the shape evenly, kLimit on overflow.
std::optional<Redistribution> redistribute(const mesh::Mesh& mesh, const Shape& shape,
                                           const Placements& from, const Placements& to);

/// "all_gather x, y of axis 0".
std::string to_string(const RedistributionStep& step, const mesh::Mesh& mesh);

}  // namespace shardtool::plan
