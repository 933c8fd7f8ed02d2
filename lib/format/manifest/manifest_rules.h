#pragma once

#include <string>
#include <vector>

#include "lib/format/manifest/manifest.h"

namespace shardtool::format {

/// Checks consistency across the records of a manifest. Throws kManifestInvalid unless
///
/// N1 file names are unique, and so are tensor names
/// N2 every rank is on the mesh, appears once, and has that rank's coordinate
/// N3 every file belongs to one rank
/// N4 a tensor has at most one shard per rank, unless shards are chunks, in a file of that rank
/// N5 a shard has as many bytes as its dtype and shape require, inside its file
///
/// The format requires an XXH3-128 for every shard of a tensor that was read: see parse_manifest.
void check_manifest(const Manifest& manifest, const std::string& path);

/// Tensors that were read and have no digest although the shards cover them. A run leaves no such
/// tensor: it has read every element of a covered tensor. A digest may be missing when --ranks
/// left out ranks that hold some of the elements, and stays missing when such outputs are joined.
std::vector<const TensorRecord*> without_digest(const Manifest& manifest);

}  // namespace shardtool::format
