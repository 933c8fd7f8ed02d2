#pragma once

#include <span>
#include <vector>

#include "lib/api/transform.h"
#include "lib/exec/move.h"

namespace shardtool::api {

/// Assigns each tensor move to a share: in source order, with about equal bytes per share. The
/// result depends only on the moves, so that every process finds the same one. `order` lists the
/// moves; the result is indexed by move.
std::vector<int> share_out(std::span<const exec::TensorMove> moves, std::span<const size_t> order,
                           int shares);

/// True for the process that also writes what belongs to no tensor.
bool leads(const WriteOptions& options);

/// Returns the smallest and largest share.
WorkShares summarize_shares(std::span<const exec::TensorMove> moves, std::span<const int> owners,
                            int shares);

}  // namespace shardtool::api
