#include "lib/ops/part.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::ops {

std::vector<i64> positions_of(const index::AxisMap& wanted, const index::AxisMap& had,
                              const std::string& what) {
  std::vector<i64> positions(static_cast<size_t>(wanted.local_size()), -1);
  const bool same_axis = wanted.global_size() == had.global_size();
  const index::AxisMap moves = same_axis ? compose(index::inverse(had), wanted) : index::AxisMap();
  if (!same_axis || moves.image_size() != wanted.image_size()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("a rank lacks features of '{}' that it computes with", what))
        .note("has", to_string(had))
        .note("needs", to_string(wanted))
        .help(
            "where devices gather weights before they compute, name the axis fsdp in --mesh, or "
            "give "
            "it \"role\": \"fsdp\" in the \"mesh\" of the mapping");
  }
  for (const index::Piece& piece : moves.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      positions[static_cast<size_t>(piece.local + i)] = piece.global + i;
    }
  }
  return positions;
}

}  // namespace shardtool::ops
