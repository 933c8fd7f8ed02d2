#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mesh/mesh.h"

namespace shardtool::mesh {

/// A mesh axis, or a part of one. `x:(pre)size` sees axis x of n devices as the three axes
/// [pre, size, n / (pre * size)], major to minor, and names the middle one (the sub-axis notation
/// of Shardy). On tp=8, tp:(1)4 has index rank / 2: devices 0 and 1 share index 0.
///
/// size 0 means the whole axis, whatever its size.
struct AxisRef {
  std::string axis;
  i64 pre = 1;
  i64 size = 0;

  bool whole() const { return size == 0; }
  bool operator==(const AxisRef&) const = default;
};

/// A list of mesh axes that one tensor axis is laid over, major to minor in the order given (JAX).
using Over = std::vector<AxisRef>;

/// "tp" or "tp:(1)4"; an Over joins them with "*", and is "nothing" when empty.
std::string to_string(const AxisRef& ref);
std::string to_string(const Over& over);
/// The inverse, for one axis. Throws kMappingSchema.
AxisRef parse_axis_ref(std::string_view text);

/// The number of devices along it. Throws kUnknownName when the mesh lacks the axis, kMesh when
/// pre * size does not divide the axis.
i64 extent(const Mesh& mesh, const AxisRef& ref);
/// The product over the list: the number of parts of a tensor axis laid over it.
i64 extent(const Mesh& mesh, const Over& over);
/// The index of a device along it: mixed radix, the first axis slowest.
i64 index_along(const Mesh& mesh, const AxisRef& ref, i64 rank);
i64 index_along(const Mesh& mesh, const Over& over, i64 rank);

/// Whether two references are no independent digits of a device's rank, so that they cannot cut one
/// tensor both: two parts of one axis are independent when one's step is a multiple of the other's
/// range.
bool overlaps(const Mesh& mesh, const AxisRef& a, const AxisRef& b);

/// The leading part of `over` with exactly `parts` indices; the devices that differ only in the
/// rest are replicas. Nothing when no such part exists.
///   leading(tp=8, {tp}, 4) = {tp:(1)4};  leading(ep=2 tp=4, {ep, tp}, 4) = {ep, tp:(1)2}
std::optional<Over> leading(const Mesh& mesh, const Over& over, i64 parts);

}  // namespace shardtool::mesh
