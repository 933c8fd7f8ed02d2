#pragma once

#include <span>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Cuts a sequence of items into `shares` runs with about equal bytes, and returns the run of each
/// item, from 0. The result depends only on the arguments, so every process finds the same one.
/// With fewer items than shares, some runs are empty.
std::vector<int> even_shares(std::span<const i64> bytes, int shares);

}  // namespace shardtool
