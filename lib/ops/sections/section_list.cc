#include "lib/ops/sections/section_list.h"

#include <numeric>

#include "lib/index/section.h"
#include "lib/ops/body.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Returns the section [begin, begin + size) of a map's global axis.
Section concatenated(const AxisMap& fused, i64 begin, i64 size, const std::string& what) {
  Section section{index::section_of(fused, begin, size), {}};
  std::vector<index::Piece> there(section.features.pieces().begin(),
                                  section.features.pieces().end());
  for (index::Piece& piece : there) piece.global += begin;
  const AxisMap wanted(section.features.local_size(), fused.global_size(), std::move(there));
  section.from = positions_of(wanted, fused, what);
  return section;
}

/// Returns features `offset` to `offset + size` of every unit of `unit` features.
Section repeated(const AxisMap& fused, i64 unit, i64 offset, i64 size, const std::string& what) {
  const AxisMap units = units_of(fused, unit, what);
  Section section{index::scale(units, size), {}};
  for (i64 u = 0; u < units.local_size(); ++u) {
    for (i64 i = 0; i < size; ++i) section.from.push_back(u * unit + offset + i);
  }
  return section;
}

/// Returns every `turns`-th feature.
Section taken_in_turns(const AxisMap& fused, i64 turns, i64 offset) {
  Section section;
  std::vector<index::Piece> pieces;
  const AxisMap chosen = index::every_kth(fused, turns, offset);
  for (const index::Piece& piece : chosen.pieces()) {
    pieces.push_back({std::ssize(section.from), piece.global, piece.size});
    for (i64 i = 0; i < piece.size; ++i) section.from.push_back(piece.local + i);
  }
  const i64 size = ceil_div(fused.global_size(), turns);
  section.features = AxisMap(std::ssize(section.from), size, std::move(pieces));
  return section;
}

}  // namespace

std::vector<Section> sections_of(Split::Order order, const AxisMap& fused,
                                 const std::vector<i64>& sizes, const std::string& what) {
  using Order = Split::Order;
  std::vector<Section> sections;
  const i64 unit = std::accumulate(sizes.begin(), sizes.end(), i64{0});
  i64 begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (order == Order::kConcat) {
      sections.push_back(concatenated(fused, begin, sizes[i], what));
    } else if (order == Order::kPerHead) {
      sections.push_back(repeated(fused, unit, begin, sizes[i], what));
    } else {
      sections.push_back(taken_in_turns(fused, std::ssize(sizes), static_cast<i64>(i)));
    }
    begin += sizes[i];
  }
  return sections;
}

}  // namespace shardtool::ops
