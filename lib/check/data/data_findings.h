#pragma once

#include <span>

#include "lib/check/data/data.h"
#include "lib/check/data/data_reader.h"

namespace shardtool::check {

/// Adds findings about what was read of a tensor: NaN, infinities and zeros; hashes and the digest
/// that are not those of the manifest; and replicas that differ. Throws the errors of
/// logical_values for other reasons than different data.
void judge_data(const DataTensor& tensor, std::span<const SeenData> seen,
                std::span<const DataFile> files, const exec::KeptRanges& kept, Findings& findings);

}  // namespace shardtool::check
