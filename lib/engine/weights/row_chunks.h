#pragma once

#include <vector>

#include "lib/index/axis_map.h"

namespace shardtool::engine {

inline constexpr i64 kRowChunkBytes = 1 << 20;

/// Returns the rows to read together from `begin` on, for a matrix of `rows` rows: at most
/// `most_bytes` bytes, and at least one row.
index::Interval row_chunk(i64 begin, i64 rows, i64 row_bytes, i64 most_bytes);

/// Returns all rows in such chunks.
std::vector<index::Interval> row_chunks(i64 rows, i64 row_bytes, i64 most_bytes = kRowChunkBytes);

}  // namespace shardtool::engine
