#pragma once

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Compares checkpoint.manifest with the headers that were read; its files are numbered like the
/// manifest's. Reports kDataMismatch when a header differs from the written one, and
/// kManifestInvalid when a shard record and the header entry differ or one is missing. Skips files
/// that could not be read.
void check_against_headers(const Checkpoint& checkpoint, const ProblemSink& report);

/// Checks files before their headers are read: reports kManifestInvalid for a symbolic link (except
/// in a Hugging Face snapshot) and kDataMismatch for another size. Leaves missing files to
/// read_headers.
void check_files(const Manifest& manifest, const std::string& folder, const ProblemSink& report);

}  // namespace shardtool::format
