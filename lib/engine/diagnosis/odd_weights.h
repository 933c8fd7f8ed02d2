#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/float_census/float_census.h"
#include "lib/engine/diagnosis/verdict.h"
#include "lib/engine/run/product_list.h"

namespace shardtool::engine {

/// Records NaN and infinite numbers in a device's part of a tensor.
void add_odd_weights(const Side& side, bool is_shard, size_t tensor, i64 rank,
                     const kernels::FloatCensus& census, std::vector<OddWeight>& odd);

/// Called with the bytes of a device's part of a tensor.
using WeightVisitor = std::function<void(size_t tensor, i64 rank, std::span<const std::byte>)>;

/// Reads those weights of an op that are not matrices of products (norms, biases, sinks, scales),
/// on the devices of `ranks`, which run the layer.
void visit_small_weights(const Side& side, const ops::BoundOp& op, std::span<const i64> ranks,
                         const WeightVisitor& visit);

}  // namespace shardtool::engine
