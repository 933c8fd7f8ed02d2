#pragma once

#include <string>

#include "shardtool/checkpoint/manifest.h"

namespace shardtool::checkpoint {

/// What the records of a manifest say about each other. Throws kManifestInvalid unless
///
/// N1 file names are unique, and so are tensor names
/// N2 every rank is on the mesh, stands once, and has that rank's coordinate
/// N3 every file is one rank's
/// N4 a tensor has at most one shard a rank, and it lies in a file of that rank
/// N5 a shard has as many bytes as its dtype and shape say, inside its file
void check_manifest(const Manifest& manifest, const std::string& path);

}  // namespace shardtool::checkpoint
