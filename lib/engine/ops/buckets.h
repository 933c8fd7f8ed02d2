#pragma once

#include <vector>

#include "lib/model/bind.h"
#include "lib/model/graph/graph.h"

namespace shardtool::engine {

/// The bucket of every distance between a key and its query, 1 - length to length - 1; `two_sided`
/// where keys behind the query are seen.
std::vector<i64> buckets_of(const model::Buckets& op, const model::Model& model, i64 length,
                            bool two_sided);

}  // namespace shardtool::engine
