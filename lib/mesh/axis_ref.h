#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mesh/mesh.h"

namespace shardtool::mesh {

/// Mesh axis or part of one. `x:(pre)size` factors axis x of n devices into three axes [pre, size,
/// n / (pre * size)], major to minor, and names the middle one (the sub-axis notation of Shardy).
/// On tp=8, tp:(1)4 has index rank / 2: devices 0 and 1 share index 0.
///
/// size 0 means the whole axis, for any axis size.
struct AxisRef {
  std::string axis;
  i64 pre = 1;
  i64 size = 0;

  bool whole() const { return size == 0; }
  bool operator==(const AxisRef&) const = default;
};

/// List of mesh axes over which one tensor axis is sharded, major to minor in the given order
/// (JAX).
using Over = std::vector<AxisRef>;

/// Formats as "tp" or "tp:(1)4"; an Over joins them with "*", and is "nothing" when empty.
std::string to_string(const AxisRef& ref);
std::string to_string(const Over& over);
/// Inverse of to_string for one axis. Throws kMappingSchema.
AxisRef parse_axis_ref(std::string_view text);

/// Number of devices along the axis. Throws kUnknownName when the mesh lacks the axis, kMesh when
/// pre * size does not divide the axis.
i64 extent(const Mesh& mesh, const AxisRef& ref);
/// Product over the list: the number of parts of a tensor axis sharded over it.
i64 extent(const Mesh& mesh, const Over& over);
/// Index of a device along the axes: mixed radix, the first axis slowest.
i64 index_along(const Mesh& mesh, const AxisRef& ref, i64 rank);
i64 index_along(const Mesh& mesh, const Over& over, i64 rank);

/// True if two references are not independent digits of a device's rank and so cannot cut the same
/// tensor: two parts of one axis are independent if the step of one is a multiple of the range of
/// the other.
bool overlaps(const Mesh& mesh, const AxisRef& a, const AxisRef& b);

/// Leading part of `over` with exactly `parts` indices, or nullopt if there is no such part.
/// Devices that differ only in the rest are replicas.
///   leading(tp=8, {tp}, 4) = {tp:(1)4};  leading(ep=2 tp=4, {ep, tp}, 4) = {ep, tp:(1)2}
std::optional<Over> leading(const Mesh& mesh, const Over& over, i64 parts);

}  // namespace shardtool::mesh
