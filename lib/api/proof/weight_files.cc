#include "lib/api/proof/weight_files.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "lib/base/error.h"
#include "lib/exec/chunk_plan.h"
#include "lib/exec/chunk_reader.h"
#include "lib/exec/stored_box.h"

namespace shardtool::api {
namespace {

/// Slack for page alignment on both sides of a chunk.
constexpr i64 kArenaSlack = 64 * exec::kPageBytes;

/// Index of the holder for a device.
size_t holder_of(const LogicalTensor& tensor, i64 rank) {
  if (tensor.ranks.empty()) return 0;
  const auto found = std::find(tensor.ranks.begin(), tensor.ranks.end(), rank);
  if (found != tensor.ranks.end()) return static_cast<size_t>(found - tensor.ranks.begin());
  throw Error(ErrorCode::kCoverage, "a device has no part of a tensor that its layout gives it")
      .tensor(tensor.spec.name);
}

/// Row-major offset of the rows in a local array of this shape, in elements.
i64 first_element(const engine::StoredRows& rows, const Shape& shape) {
  const size_t axis = rows.outer < 0 ? 0 : 1;
  i64 row_size = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) row_size *= shape[d];
  const i64 before = rows.outer < 0 ? 0 : rows.outer * shape[1];
  return (before + rows.begin) * row_size;
}

/// The rows as a region of the whole tensor.
index::Region region_of(const engine::StoredRows& rows, const Shape& shape) {
  index::Region region = index::whole_region(shape);
  if (shape.empty()) return region;
  const size_t axis = rows.outer < 0 ? 0 : 1;
  region[axis] = index::AxisMap::slice(shape[axis], {rows.begin, rows.end});
  if (rows.outer >= 0) {
    region[0] = index::AxisMap::slice(shape[0], {rows.outer, rows.outer + 1});
  }
  return region;
}

bool has_addends(const LogicalTensor& tensor) {
  return std::ranges::any_of(tensor.shifts,
                             [](const index::ValueShift& shift) { return !shift.addends.empty(); });
}

}  // namespace

WeightFiles::WeightFiles(const LogicalCheckpoint& checkpoint)
    : checkpoint_(checkpoint), files_(exec::open_sources(checkpoint.files)) {}

WeightFiles::Place WeightFiles::place_of(const engine::StoredRows& rows) const {
  const LogicalTensor& tensor = checkpoint_.tensors.at(rows.tensor);
  const size_t holder = holder_of(tensor, rows.rank);
  const exec::Slot& slot = tensor.side.slots.at(holder);
  const Shape shape = tensor.side.holders->local_shape(static_cast<int>(holder));
  const i64 offset = first_element(rows, shape) * bits(tensor.spec.dtype) / 8;
  return {&files_.at(static_cast<size_t>(slot.file)), slot.offset + offset};
}

void WeightFiles::read(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const Place place = place_of(rows);
  exec::read_from(*place.file, bytes, place.offset);
  const LogicalTensor& tensor = checkpoint_.tensors.at(rows.tensor);
  if (tensor.shifts.empty()) return;
  exec::restore_values(tensor.spec.name, tensor.spec.dtype,
                       tensor.shifts.at(holder_of(tensor, rows.rank)), rows.begin, bytes);
}

const std::byte* WeightFiles::read_pages(const engine::StoredRows& rows, i64 bytes,
                                         std::byte* buffer) const {
  const Place place = place_of(rows);
  return place.file->read(buffer, bytes, place.offset);
}

MergedFiles::MergedFiles(const LogicalCheckpoint& shards)
    : shards_(shards), files_(exec::open_sources(shards.files)) {}

/// Reads integers with per-device shifts.
void MergedFiles::read_values(const LogicalTensor& tensor, const engine::StoredRows& rows,
                              std::span<std::byte> bytes) const {
  const auto values = exec::load_shifted(tensor.spec.name, tensor.spec.dtype, tensor.spec.shape,
                                         tensor.side, tensor.shifts, files_);
  const i64 width = bits(tensor.spec.dtype) / CHAR_BIT;
  for (i64 i = rows.begin; i < rows.end; ++i) {
    std::memcpy(bytes.data() + (i - rows.begin) * width, &values[static_cast<size_t>(i)],
                static_cast<size_t>(width));
  }
}

void MergedFiles::read(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const LogicalTensor& tensor = shards_.tensors.at(rows.tensor);
  if (has_addends(tensor)) return read_values(tensor, rows, bytes);
  exec::TensorMove move;
  move.name = tensor.spec.name;
  move.dtype = tensor.spec.dtype;
  move.shape = tensor.spec.shape;
  move.from = tensor.side;
  auto wanted = std::make_shared<index::HolderSet>(tensor.spec.shape);
  wanted->add(region_of(rows, tensor.spec.shape));
  move.to = {std::move(wanted), {{0, 0}}};
  exec::check_move(move);
  const i64 arena = 4 * std::ssize(bytes) + kArenaSlack;
  exec::ChunkPlan plan(move, {arena - kArenaSlack / 2, arena - kArenaSlack / 2});
  exec::ChunkReader reader(arena, exec::Digests::kNone);
  exec::ChunkPlan::Position position;
  while (plan.next(position)) {
    const exec::Chunk chunk = plan.chunk(position);
    const exec::WantedChunk part{0, &move, &chunk};
    const exec::FilledChunk& filled = reader.fill({&part, 1}, files_).front();
    for (size_t o = 0; o < chunk.outputs.size(); ++o) {
      const auto from = filled.bytes_of(o);
      std::memcpy(bytes.data() + chunk.outputs[o].targets.front().offset, from.data(), from.size());
    }
  }
}

}  // namespace shardtool::api
