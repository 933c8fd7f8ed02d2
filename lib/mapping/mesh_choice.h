#pragma once

#include <string>
#include <vector>

#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/mesh.h"

namespace shardtool::mapping {

/// Returns the mesh of the options, or else of the nearest document that has one. Throws kMesh if
/// there is no mesh, and for a document's size "auto", which only the options' mesh replaces.
/// Throws kUnknownName if the options' mesh lacks an axis of the user's own document over which
/// that document cuts.
mesh::Mesh choose_mesh(const Mapping& mapping, const ResolveOptions& options);

/// Returns the axes of the mesh with the role "fsdp", in the mesh's order. The nearest document
/// that has a mesh gives the roles; an axis that it lacks, which is one of a command line's mesh,
/// has this role if it is named "fsdp".
std::vector<std::string> gathered_axes(const Mapping& mapping, const mesh::Mesh& mesh);

}  // namespace shardtool::mapping
