#include "lib/engine/run/part_axis.h"

#include <algorithm>

namespace shardtool::engine {

std::vector<i64> globals_of(const index::AxisMap& map, i64 begin, i64 end) {
  std::vector<i64> globals(static_cast<size_t>(end - begin), kPadding);
  for (const index::Piece& piece : map.pieces()) {
    const i64 last = std::min(end, piece.local_end());
    for (i64 local = std::max(begin, piece.local); local < last; ++local) {
      globals[static_cast<size_t>(local - begin)] = piece.global + local - piece.local;
    }
  }
  return globals;
}

PartAxis::PartAxis(const layout::Layout& layout, size_t axis, i64 rank, i64 unit)
    : local_(index::inverse(layout.blocks(rank, axis))), refinement_(layout.refinement()[axis]) {
  const i64 granularity = layout.axes()[axis].granularity;
  block_ = granularity > 1 ? granularity / refinement_ : unit;
}

std::optional<i64> PartAxis::of_stored(i64 stored) const {
  for (i64 copy = 0; copy < refinement_; ++copy) {
    const i64 block = stored * refinement_ + copy;
    if (block < 0 || block >= local_.local_size()) break;
    if (const auto local = local_(block)) return local;
  }
  return std::nullopt;
}

}  // namespace shardtool::engine
