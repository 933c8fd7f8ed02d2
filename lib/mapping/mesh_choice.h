#pragma once

#include <string>
#include <vector>

#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// Returns the mesh of the options, or else of the nearest document that has one. Computes a size
/// "auto" from the number of devices. Throws kMesh if there is no mesh, for two sizes "auto" or one
/// that does not divide, and if the product of the sizes differs from options.devices.
mesh::Mesh choose_mesh(const Mapping& mapping, const ResolveOptions& options);

/// Returns the axes of the mesh with the role "fsdp", in the mesh's order. The nearest document
/// that has a mesh gives the roles; an axis that it lacks, which is one of a command line's mesh,
/// has this role if it is named "fsdp".
std::vector<std::string> gathered_axes(const Mapping& mapping, const mesh::Mesh& mesh);

}  // namespace shardtool::mapping
