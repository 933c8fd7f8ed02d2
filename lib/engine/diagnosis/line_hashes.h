#pragma once

#include <cstdint>
#include <vector>

#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {

/// One number per row or column of a matrix: equal bytes in the same order have equal hashes.
using LineHashes = std::vector<std::uint64_t>;

LineHashes stored_row_hashes(const Side& shards, const StoredPart& part, i64 outer);
LineHashes stored_column_hashes(const Side& shards, const StoredPart& part, i64 outer);
LineHashes whole_row_hashes(const Side& whole, const WholeMatrix& matrix);
LineHashes whole_column_hashes(const Side& whole, const WholeMatrix& matrix);
/// Of a whole matrix, its rows taken together.
std::uint64_t hash_of(const LineHashes& rows);

/// Which line of the whole model every local line holds: the global index, or -1 where nothing of
/// it is found. Lines that are as they are to be hold their own, padding nothing. Of several equal
/// candidates the one counts that goes on longest with the lines after it.
///
/// `expected` places the local lines; `table` has one hash per global line.
std::vector<i64> held_lines(const LineHashes& found, const index::AxisMap& expected,
                            const LineHashes& table);

}  // namespace shardtool::engine
