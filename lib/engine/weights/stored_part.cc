#include "lib/engine/weights/stored_part.h"

#include <algorithm>
#include <cstring>

namespace shardtool::engine {
namespace {

index::AxisMap axis_of(const index::Region& region, size_t axis) {
  return axis < region.size() ? region[axis] : index::AxisMap::identity(1);
}

/// Assigns the region's axes to outer, rows and columns.
void place(StoredPart& part, const index::Region& region, bool is_turned) {
  constexpr size_t kStack = 3;
  part.has_outer = region.size() >= kStack;
  const size_t first = part.has_outer ? 1 : 0;
  part.outer = part.has_outer ? region.front() : index::AxisMap::identity(1);
  part.rows = axis_of(region, first);
  part.columns = axis_of(region, first + 1);
  part.inner.clear();
  for (size_t axis = first + 2; axis < region.size(); ++axis) {
    part.columns = index::product(part.columns, region[axis]);
    part.inner.push_back(region[axis].global_size());
  }
  if (is_turned) std::swap(part.rows, part.columns);
}

}  // namespace

std::optional<StoredPart> stored_part(const Side& whole, const Side& shards, size_t tensor,
                                      i64 rank) {
  const TensorSpec& spec = shards.tensors[tensor];
  const auto same = whole.by_name.find(spec.name);
  const auto region = shards.layouts(tensor).region(rank);
  if (!region || same == whole.by_name.end()) return std::nullopt;
  const TensorSpec& other = whole.tensors[same->second];
  if (other.shape != spec.shape || other.dtype != spec.dtype) return std::nullopt;
  if (whole.is_turned(same->second) != shards.is_turned(tensor)) return std::nullopt;
  constexpr int kByte = 8;
  constexpr int kWord = 64;
  if (bits(spec.dtype) % kByte != 0 || bits(spec.dtype) > kWord) return std::nullopt;
  StoredPart part;
  part.tensor = tensor;
  part.whole_tensor = same->second;
  part.rank = rank;
  part.dtype = spec.dtype;
  place(part, *region, shards.is_turned(tensor));
  return part;
}

std::optional<StoredPart> own_part(const Side& whole, const Side& shards, size_t tensor, i64 rank) {
  auto part = stored_part(whole, shards, tensor, rank);
  if (!part || !shards.stored_layouts) return part;
  const auto stored = shards.stored_layouts(tensor).region(rank);
  if (!stored) return std::nullopt;
  index::Region region = shards.region(tensor, rank);
  for (size_t axis = 0; axis < region.size(); ++axis) {
    const index::AxisMap& own = (*stored)[axis];
    region[axis] = compose(own, compose(inverse(own), region[axis]));
  }
  place(*part, region, shards.is_turned(tensor));
  return part;
}

std::vector<StoredPart> part_with_copies(const Side& whole, const Side& shards, size_t tensor,
                                         i64 rank) {
  std::vector<StoredPart> parts;
  const auto part = stored_part(whole, shards, tensor, rank);
  if (!part) return parts;
  parts.push_back(*part);
  const layout::Layout& layout = shards.layouts(tensor);
  const bool is_refined =
      std::ranges::any_of(layout.refinement(), [](i64 blocks) { return blocks > 1; });
  if (!is_refined) return parts;
  for (const index::Region& copy : layout.fills(rank)) {
    parts.push_back(*part);
    place(parts.back(), copy, shards.is_turned(tensor));
  }
  return parts;
}

ByteRows stored_rows(const Side& shards, const StoredPart& part, i64 outer, i64 begin, i64 end) {
  ByteRows bytes(static_cast<size_t>((end - begin) * part.row_bytes()));
  if (bytes.empty()) return bytes;
  shards.weights->read({part.tensor, part.rank, part.has_outer ? outer : -1, begin, end}, bytes);
  return bytes;
}

std::optional<WholeMatrix> expected_matrix(const StoredPart& part, i64 outer) {
  const auto global = part.outer(outer);
  if (!global) return std::nullopt;
  return WholeMatrix{part.whole_tensor, part.has_outer, *global, part.rows, part.columns};
}

ByteRows whole_rows(const Side& whole, const WholeMatrix& matrix, i64 begin, i64 end) {
  const i64 element = bits(whole.tensors[matrix.tensor].dtype) / 8;
  const i64 width = matrix.columns.local_size() * element;
  const i64 whole_width = matrix.columns.global_size() * element;
  ByteRows bytes(static_cast<size_t>((end - begin) * width));
  ByteRows buffer;
  for (const index::Piece& piece : matrix.rows.pieces()) {
    const i64 from = std::max(begin, piece.local);
    const i64 to = std::min(end, piece.local_end());
    if (from >= to || width == 0) continue;
    const i64 global = piece.global + from - piece.local;
    buffer.resize(static_cast<size_t>((to - from) * whole_width));
    whole.weights->read(
        {matrix.tensor, 0, matrix.has_outer ? matrix.outer : -1, global, global + to - from},
        buffer);
    for (i64 r = from; r < to; ++r) {
      for (const index::Piece& column : matrix.columns.pieces()) {
        std::memcpy(bytes.data() + (r - begin) * width + column.local * element,
                    buffer.data() + (r - from) * whole_width + column.global * element,
                    static_cast<size_t>(column.size * element));
      }
    }
  }
  return bytes;
}

}  // namespace shardtool::engine
