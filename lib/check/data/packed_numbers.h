#pragma once

#include <span>

#include "lib/check/data/data.h"
#include "lib/check/model.h"

namespace shardtool::check {

/// ST0711: reads the stored group of every input of packed weights (g_idx) and compares it with the
/// number of groups and, without activation order, with the input's own group. ST0413: reads the
/// recorded shape of packed weights (weight_shape) and compares it with the codes, which may be
/// more in the last word of a row, and with the inputs that the model reads. Skips tensors that are
/// not in `tensors`, and those whose shards do not make one vector, which other rules find. Reads
/// what is not kept. Throws the errors of reading.
void check_packed_numbers(const CheckedModel& model, std::span<const DataTensor> tensors,
                          std::span<const DataFile> files, const exec::KeptRanges& kept,
                          Findings& findings);

}  // namespace shardtool::check
