#pragma once

#include <cstdint>
#include <vector>

#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {

/// One hash per row or column of a matrix; depends on the bytes and their order.
using LineHashes = std::vector<std::uint64_t>;

LineHashes stored_row_hashes(const Side& shards, const StoredPart& part, i64 outer);
LineHashes stored_column_hashes(const Side& shards, const StoredPart& part, i64 outer);
LineHashes whole_row_hashes(const Side& whole, const WholeMatrix& matrix);
LineHashes whole_column_hashes(const Side& whole, const WholeMatrix& matrix);
/// Hash of a whole matrix from its row hashes.
std::uint64_t hash_of(const LineHashes& rows);

/// Finds the line of the whole model that every local line holds: its global index, or -1 if the
/// line is not found. Correct lines map to their own index, padding to -1. Among equal candidates
/// the one with the longest run of matching lines wins.
///
/// `expected` places the local lines; `table` has one hash per global line.
std::vector<i64> held_lines(const LineHashes& found, const index::AxisMap& expected,
                            const LineHashes& table);

}  // namespace shardtool::engine
