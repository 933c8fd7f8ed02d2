#pragma once

#include <span>
#include <vector>

#include "shardtool/engine/product_list.h"
#include "shardtool/engine/verdict.h"
#include "shardtool/kernels/float_census/float_census.h"

namespace shardtool::engine {

/// Notes the numbers of one chunk of a product's matrix that are none.
void add_odd_weights(const Side& side, bool is_shard, const Product& product,
                     const kernels::FloatCensus& census, std::vector<OddWeight>& odd);

/// Notes those of the weights of one op that no product streams: norms, biases, sinks, scales, on
/// the devices of `ranks`, which run the layer.
void add_odd_small_weights(const Side& side, bool is_shard, const model::BoundOp& op,
                           std::span<const i64> ranks, std::vector<OddWeight>& odd);

}  // namespace shardtool::engine
