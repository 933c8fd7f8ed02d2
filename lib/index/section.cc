#include "lib/index/section.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardtool::index {

AxisMap section_of(const AxisMap& a, i64 begin, i64 size) {
  std::vector<Piece> pieces;
  i64 local = 0;
  for (const Piece& piece : a.pieces()) {
    const i64 from = std::max(piece.global, begin);
    const i64 to = std::min(piece.global_end(), begin + size);
    if (from >= to) continue;
    pieces.push_back({local, from - begin, to - from});
    local += to - from;
  }
  return AxisMap(local, size, std::move(pieces));
}

}  // namespace shardtool::index
