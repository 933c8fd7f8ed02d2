#pragma once

#include <string>
#include <vector>

#include "lib/checkpoint/manifest.h"

namespace shardtool::checkpoint {

/// What the records of a manifest say about each other. Throws kManifestInvalid unless
///
/// N1 file names are unique, and so are tensor names
/// N2 every rank is on the mesh, stands once, and has that rank's coordinate
/// N3 every file is one rank's
/// N4 a tensor has at most one shard a rank, and it lies in a file of that rank
/// N5 a shard has as many bytes as its dtype and shape say, inside its file
///
/// That every shard has its XXH3-128 is a rule of the format: see parse_manifest.
void check_manifest(const Manifest& manifest, const std::string& path);

/// The tensors without a digest although the manifest's shards cover them. A run that ended well
/// leaves none: it has read every element of such a tensor. A digest is rightly missing where ranks
/// that --ranks left out hold some of the elements, and stays missing when such outputs are joined.
std::vector<const TensorRecord*> without_digest(const Manifest& manifest);

}  // namespace shardtool::checkpoint
