#include "lib/engine/weights/row_chunks.h"

#include <algorithm>

namespace shardtool::engine {

index::Interval row_chunk(i64 begin, i64 rows, i64 row_bytes, i64 most_bytes) {
  const i64 most = std::max<i64>(1, most_bytes / std::max<i64>(1, row_bytes));
  return {begin, std::min(rows, begin + most)};
}

std::vector<index::Interval> row_chunks(i64 rows, i64 row_bytes, i64 most_bytes) {
  std::vector<index::Interval> chunks;
  for (i64 begin = 0; begin < rows; begin = chunks.back().end) {
    chunks.push_back(row_chunk(begin, rows, row_bytes, most_bytes));
  }
  return chunks;
}

}  // namespace shardtool::engine
