#include "lib/engine/weights/padding.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/engine/weights/row_chunks.h"
#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {
namespace {

bool has_padding(const index::AxisMap& map) {
  return map.image_size() < map.local_size();
}

bool is_zero(const std::byte* begin, i64 bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

/// True if the padding of one stored matrix is zero.
bool is_zero_outside(const Side& shards, const StoredPart& part, i64 outer) {
  const bool pads_matrix = !part.outer(outer);
  const i64 element = part.element_bytes();
  for (const auto [begin, end] : row_chunks(part.rows.local_size(), part.row_bytes())) {
    const ByteRows bytes = stored_rows(shards, part, outer, begin, end);
    for (i64 r = begin; r < end; ++r) {
      const std::byte* row = bytes.data() + (r - begin) * part.row_bytes();
      if (pads_matrix || !part.rows(r)) {
        if (!is_zero(row, part.row_bytes())) return false;
        continue;
      }
      for (i64 c = 0; c < part.columns.local_size() && has_padding(part.columns); ++c) {
        if (!part.columns(c) && !is_zero(row + c * element, element)) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> odd_padding(const Side& shards) {
  std::vector<std::string> texts;
  for (size_t tensor = 0; tensor < shards.tensors.size(); ++tensor) {
    const layout::Layout& layout = shards.layouts(tensor);
    for (const i64 rank : layout.ranks()) {
      const auto part = stored_part(shards, shards, tensor, rank);
      if (!part || !layout.fills(rank).empty()) continue;
      if (!has_padding(part->outer) && !has_padding(part->rows) && !has_padding(part->columns)) {
        continue;
      }
      bool is_clean = true;
      for (i64 o = 0; o < part->outer.local_size() && is_clean; ++o) {
        is_clean = is_zero_outside(shards, *part, o);
      }
      if (is_clean) continue;
      texts.push_back(fmt::format("{}: rank {} padding is not zero",
                                  quote_for_message(shards.tensors[tensor].name), rank));
    }
  }
  return texts;
}

}  // namespace shardtool::engine
