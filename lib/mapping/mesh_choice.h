#pragma once

#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// The mesh of the options, or else of the nearest document that has one, with "auto" filled from
/// the number of devices. Throws kMesh when there is none, for more than one "auto" or one that
/// cannot be filled, and when the product differs from options.devices.
mesh::Mesh choose_mesh(const Mapping& mapping, const ResolveOptions& options);

}  // namespace shardtool::mapping
