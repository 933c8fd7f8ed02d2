#pragma once

#include "lib/checkpoint/checkpoint.h"

namespace shardtool::checkpoint {

/// Holds checkpoint.manifest against the headers that were read; its files are numbered like the
/// manifest's. Reports kDataMismatch when a header is not the one that was written, and
/// kManifestInvalid when a shard record and the header entry differ or one has what the other
/// lacks. Files that could not be read are passed over.
void check_against_headers(const Checkpoint& checkpoint, const ProblemSink& report);

/// Before the headers are read: reports kManifestInvalid for a file behind a link (but in a Hugging
/// Face snapshot) and kDataMismatch for one of another size. A file that is not there is left to
/// read_headers.
void check_files(const Manifest& manifest, const std::string& folder, const ProblemSink& report);

}  // namespace shardtool::checkpoint
