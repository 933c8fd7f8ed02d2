#pragma once

#include <map>
#include <vector>

#include "lib/api/transfer/placed_tensors.h"
#include "lib/mapping/document/config.h"
#include "lib/model/packed_format.h"
#include "lib/ops/pricing.h"

namespace shardtool::api {

/// Adds to the tensors the weights that are stored packed, under the names that ops read; they are
/// not stored. Returns them in the order added. Tensors of an unknown format stay as stored.
std::vector<model::PackedWeight> add_unpacked(const mapping::ModelConfig& config,
                                              PlacedTensors& placed);

/// Returns the cost of reading these weights, by their index after the `stored` tensors. An element
/// takes its code and its share of the scales and zeros of a group. NVFP4 is multiplied
/// as FP4, and MXFP4 with values in FP8; integers are widened first, as GPTQ's, AWQ's and Marlin's
/// kernels do.
std::map<size_t, ops::WeightRead> packed_reads(const std::vector<model::PackedWeight>& packed,
                                               const std::vector<TensorSpec>& specs);

}  // namespace shardtool::api
