#pragma once

#include <span>
#include <vector>

#include "lib/check/data/data.h"
#include "lib/exec/files/kept_ranges.h"
#include "lib/index/value_shift.h"

namespace shardtool::check {

/// Returns the values of a tensor of integers in its shards, less the shifts of the holders; empty
/// shifts: as they are stored. Reads holders that are not kept. Throws the errors of
/// exec::load_shifted.
std::vector<i64> logical_values(const DataTensor& tensor, std::span<const index::ValueShift> shifts,
                                std::span<const DataFile> files, const exec::KeptRanges& kept);

}  // namespace shardtool::check
