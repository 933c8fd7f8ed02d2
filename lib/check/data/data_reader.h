#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/float_census/float_census.h"
#include "kernels/xxh3/xxh3.h"
#include "lib/check/data/data.h"
#include "lib/check/data/record_sums.h"

namespace shardtool::check {

/// Result of reading one holder of a tensor.
struct SeenData {
  kernels::FloatCensus census;
  std::uint64_t digest = 0;  ///< part of the tensor's digest
  kernels::Hash128 xxh3;     ///< of the holder's bytes; only if something is compared with it
};

/// Reads every holder's bytes once, in file order, within the memory budget of the resources, and
/// returns the results by tensor and holder. Sums records of torch's zip archives that are one
/// tensor, and keeps vectors of which logical_values may be asked for, in a quarter of the budget.
/// Throws the errors of exec::stream.
std::vector<std::vector<SeenData>> read_holders(std::span<const DataTensor> tensors,
                                                std::span<const DataFile> files,
                                                const exec::Resources& resources, RecordSums& sums,
                                                exec::KeptRanges& kept);

}  // namespace shardtool::check
