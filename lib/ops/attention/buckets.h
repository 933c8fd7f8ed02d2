#pragma once

#include <vector>

#include "lib/ops/attention/attention.h"
#include "lib/ops/bound_op.h"

namespace shardtool::ops {

/// Returns the bucket of every distance between a key and its query, 1 - length to length - 1;
/// `two_sided` if queries see later keys.
std::vector<i64> buckets_of(const Buckets& op, const ModelSizes& model, i64 length, bool two_sided);

}  // namespace shardtool::ops
