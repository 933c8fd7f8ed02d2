#pragma once

#include "lib/check/findings.h"
#include "lib/exec/stream.h"
#include "lib/format/checkpoint.h"

namespace shardtool::check {

/// ST0708 and ST0709: hashes every file whose hash is known, and compares the two: weights files
/// with a SHA-256 in the manifest, and the files of a snapshot in the Hugging Face cache (not those
/// in folders inside it), which are links to blobs that are named by their hash. A file that cannot
/// be opened is ST0101. Throws what exec::hash_files throws.
void check_file_hashes(const format::Checkpoint& checkpoint, const exec::Resources& resources,
                       Findings& findings);

}  // namespace shardtool::check
