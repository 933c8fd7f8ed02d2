#include "lib/api/proof/weight_files.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "kernels/cast/cast.h"
#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/base/error.h"
#include "lib/exec/chunks/cast_chunk.h"
#include "lib/exec/chunks/chunk_plan.h"
#include "lib/exec/chunks/chunk_reader.h"
#include "lib/exec/files/stored_box.h"
#include "lib/layout/gathered.h"

namespace shardtool::api {
namespace {

/// Slack for page alignment on both sides of a chunk.
constexpr i64 kArenaSlack = 64 * exec::kPageBytes;

/// Index of the holder for a device.
size_t holder_of(const LogicalTensor& tensor, i64 rank) {
  if (tensor.ranks.empty()) return 0;
  const auto found = std::find(tensor.ranks.begin(), tensor.ranks.end(), rank);
  if (found != tensor.ranks.end()) return static_cast<size_t>(found - tensor.ranks.begin());
  throw Error(ErrorCode::kCoverage, "a rank has no shard of a tensor that its layout gives it")
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

/// Computes rows of a weight that is unpacked.
void compute_rows(const LogicalTensor& tensor, const engine::StoredRows& rows,
                  std::span<const exec::SourceFile> files, std::span<std::byte> bytes) {
  const Shape& shape = tensor.spec.shape;
  exec::ComputedBox box;
  box.columns = shape.back();
  // Rows of the first axis of a stack are whole matrices.
  const i64 of_row = rows.outer < 0 && shape.size() > 2 ? shape[1] : 1;
  box.row = std::max<i64>(rows.outer, 0) * shape[shape.size() - 2] + rows.begin * of_row;
  box.rows = (rows.end - rows.begin) * of_row;
  box.memory = bytes.data();
  box.stride = box.columns * bits(tensor.unpacked->dtype()) / CHAR_BIT;
  exec::ComputedReport report;
  if (box.rows > 0) tensor.unpacked->compute(box, files, report);
}

/// Returns the rows of a region.
index::Region rows_of(index::Region region, const engine::StoredRows& rows) {
  if (region.empty()) return region;
  const auto keep = [&region](size_t axis, index::Interval kept) {
    const index::AxisMap& map = region[axis];
    region[axis] = compose(map, index::AxisMap::slice(map.local_size(), kept));
  };
  keep(rows.outer < 0 ? 0 : 1, {rows.begin, rows.end});
  if (rows.outer >= 0) keep(0, {rows.outer, rows.outer + 1});
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
  const i64 offset = first_element(rows, shape) * bits(tensor.stored_dtype()) / 8;
  return {&files_.at(static_cast<size_t>(slot.file)), slot.offset + offset};
}

void WeightFiles::read(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const LogicalTensor& tensor = checkpoint_.tensors.at(rows.tensor);
  if (!tensor.cast_from) return read_stored(rows, bytes);
  const i64 n = std::ssize(bytes) * CHAR_BIT / bits(tensor.spec.dtype);
  std::vector<std::byte> stored(static_cast<size_t>(n * bits(*tensor.cast_from) / CHAR_BIT));
  read_stored(rows, stored);
  kernels::cast(*tensor.cast_from, tensor.spec.dtype, stored.data(), n, bytes.data());
}

/// Reads rows in the type that they have before a cast.
void WeightFiles::read_stored(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const LogicalTensor& tensor = checkpoint_.tensors.at(rows.tensor);
  if (tensor.unpacked) return compute_rows(tensor, rows, files_, bytes);
  const Place place = place_of(rows);
  exec::read_from(*place.file, bytes, place.offset);
  if (tensor.shifts.empty()) return;
  exec::restore_values(tensor.spec.name, tensor.stored_dtype(),
                       tensor.shifts.at(holder_of(tensor, rows.rank)), rows.begin, bytes);
}

const std::byte* WeightFiles::read_pages(const engine::StoredRows& rows, i64 bytes,
                                         std::byte* buffer) const {
  const LogicalTensor& tensor = checkpoint_.tensors.at(rows.tensor);
  if (tensor.unpacked || tensor.cast_from) return WeightSource::read_pages(rows, bytes, buffer);
  const Place place = place_of(rows);
  return place.file->read(buffer, bytes, place.offset);
}

MergedFiles::MergedFiles(const LogicalCheckpoint& shards)
    : shards_(shards), files_(exec::open_sources(shards.files)) {}

namespace {

/// Reads the elements of a vector of integers with per-device shifts.
void read_values(const LogicalTensor& tensor, const index::AxisMap& wanted,
                 std::span<const exec::SourceFile> files, std::span<std::byte> bytes) {
  const auto values = exec::load_shifted(tensor.spec.name, tensor.spec.dtype, tensor.spec.shape,
                                         tensor.side, tensor.shifts, files);
  const i64 width = bits(tensor.spec.dtype) / CHAR_BIT;
  for (i64 i = 0; i < wanted.local_size(); ++i) {
    const auto global = wanted(i);
    if (!global) continue;
    std::memcpy(bytes.data() + i * width, &values[static_cast<size_t>(*global)],
                static_cast<size_t>(width));
  }
}

/// Reads a region of a tensor from the holders of `from`, zeros where it is padding. Throws
/// kCoverage if they lack some of it.
void read_region(const LogicalTensor& tensor, const exec::MoveSide& from,
                 const index::Region& wanted, std::span<const exec::SourceFile> files,
                 std::span<std::byte> bytes) {
  std::ranges::fill(bytes, std::byte{0});
  if (has_addends(tensor)) return read_values(tensor, wanted.front(), files, bytes);
  exec::TensorMove move;
  move.name = tensor.spec.name;
  move.dtype = tensor.stored_dtype();
  move.shape = tensor.spec.shape;
  move.from = from;
  if (tensor.cast_from) move.cast_to = tensor.spec.dtype;
  move.computed = tensor.unpacked;
  auto holder = std::make_shared<index::HolderSet>(tensor.spec.shape);
  holder->add(wanted);
  move.to = {std::move(holder), {{0, 0}}};
  exec::check_move(move);
  const i64 arena = 4 * std::ssize(bytes) + kArenaSlack;
  exec::ChunkPlan plan(move, {arena - kArenaSlack / 2, arena - kArenaSlack / 2});
  exec::ChunkReader reader(arena, exec::Digests::kNone);
  exec::ChunkPlan::Position position;
  while (plan.next(position)) {
    const exec::Chunk chunk = plan.chunk(position);
    const exec::WantedChunk part{0, &move, &chunk};
    const exec::FilledChunk& filled = reader.fill({&part, 1}, files).front();
    exec::cast_outputs(filled);
    for (size_t o = 0; o < chunk.outputs.size(); ++o) {
      const auto copied = filled.result_of(o);
      std::memcpy(bytes.data() + chunk.outputs[o].targets.front().offset, copied.data(),
                  copied.size());
    }
  }
}

/// True if no element of a tensor is on devices with different indices on a mesh axis.
bool is_once_along(const LogicalTensor& tensor, const mesh::Mesh& mesh, size_t axis) {
  const index::HolderSet& holders = *tensor.side.holders;
  const auto index_of = [&](int holder) {
    return mesh.coordinate(tensor.ranks[static_cast<size_t>(holder)])[axis];
  };
  i64 held = 0;
  for (const int first : holders.firsts()) {
    const i64 size = index::image_size(holders.region(first));
    const bool is_one_index = std::ranges::all_of(
        holders.replicas(first),
        [&, index = index_of(first)](int holder) { return index_of(holder) == index; });
    if (size > 0 && !is_one_index) return false;
    held += size;
  }
  return held == element_count(tensor.spec.shape);
}

/// Returns the numbers of the mesh axes along which all devices join a tensor from the same shards:
/// they compute with equal parts, and for no element is one of them nearer to a copy than another.
std::vector<size_t> alike_axes(const LogicalTensor& tensor, const layout::Layout& computed) {
  std::vector<size_t> alike;
  if (tensor.ranks.empty()) return alike;
  const mesh::Mesh& mesh = computed.mesh();
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const bool is_equal = !layout::is_cut_along(computed, mesh.axes()[axis].name);
    if (is_equal && is_once_along(tensor, mesh, axis)) alike.push_back(axis);
  }
  return alike;
}

/// Number of mesh axes on which two cells differ.
size_t distance(const mesh::Coordinate& a, const mesh::Coordinate& b) {
  size_t axes = 0;
  for (size_t i = 0; i < a.size(); ++i) axes += a[i] != b[i] ? 1 : 0;
  return axes;
}

}  // namespace

void MergedFiles::read(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const LogicalTensor& tensor = shards_.tensors.at(rows.tensor);
  const index::Region wanted = rows_of(index::whole_region(tensor.spec.shape), rows);
  read_region(tensor, tensor.side, wanted, files_, bytes);
}

GatheredFiles::GatheredFiles(const LogicalCheckpoint& shards, Layouts computed,
                             std::vector<bool> is_gathered)
    : shards_(shards),
      computed_(std::move(computed)),
      is_gathered_(std::move(is_gathered)),
      alike_(is_gathered_.size()),
      own_(std::make_shared<const WeightFiles>(shards)),
      files_(
          std::make_shared<const std::vector<exec::SourceFile>>(exec::open_sources(shards.files))) {
  for (size_t t = 0; t < alike_.size(); ++t) {
    if (is_gathered_[t]) alike_[t] = alike_axes(shards_.tensors[t], *computed_[t]);
  }
}

GatheredFiles::GatheredFiles(const GatheredFiles& files, Layouts computed,
                             std::vector<bool> is_gathered)
    : shards_(files.shards_),
      computed_(std::move(computed)),
      is_gathered_(std::move(is_gathered)),
      alike_(is_gathered_.size()),
      own_(files.own_),
      files_(files.files_) {}

/// Returns the holders of a tensor, the nearest to the rank first: its own shard is always read.
exec::MoveSide GatheredFiles::senders(size_t tensor, i64 rank) const {
  const LogicalTensor& gathered = shards_.tensors[tensor];
  const mesh::Mesh& mesh = computed_[tensor]->mesh();
  const mesh::Coordinate here = mesh.coordinate(rank);
  std::vector<std::vector<size_t>> at_distance(here.size() + 1);
  for (size_t h = 0; h < gathered.ranks.size(); ++h) {
    at_distance[distance(here, mesh.coordinate(gathered.ranks[h]))].push_back(h);
  }
  std::vector<size_t> order;
  for (const auto& near : at_distance) order.insert(order.end(), near.begin(), near.end());
  auto holders = std::make_shared<index::HolderSet>(gathered.spec.shape);
  std::vector<exec::Slot> slots;
  for (const size_t h : order) {
    holders->add(gathered.side.holders->region(static_cast<int>(h)));
    slots.push_back(gathered.side.slots[h]);
  }
  return {std::move(holders), std::move(slots)};
}

void GatheredFiles::read(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  if (!is_gathered_[rows.tensor]) return own_->read(rows, bytes);
  if (alike_[rows.tensor].empty()) return join(rows, bytes);
  const engine::StoredRows shared = of_first_alike(rows);
  if (kept_.find(shared, bytes)) return;
  join(rows, bytes);
  kept_.keep(shared, bytes);
}

/// Returns the same rows on the first device that reads the same bytes.
engine::StoredRows GatheredFiles::of_first_alike(engine::StoredRows rows) const {
  const mesh::Mesh& mesh = computed_[rows.tensor]->mesh();
  mesh::Coordinate cell = mesh.coordinate(rows.rank);
  for (const size_t axis : alike_[rows.tensor]) cell[axis] = 0;
  rows.rank = mesh.rank(cell);
  return rows;
}

std::vector<std::string> GatheredFiles::alike_along(size_t tensor) const {
  std::vector<std::string> names;
  for (const size_t axis : alike_[tensor]) {
    names.push_back(computed_[tensor]->mesh().axes()[axis].name);
  }
  return names;
}

void GatheredFiles::join(const engine::StoredRows& rows, std::span<std::byte> bytes) const {
  const LogicalTensor& tensor = shards_.tensors[rows.tensor];
  const layout::Layout& layout = *computed_[rows.tensor];
  const exec::MoveSide from = senders(rows.tensor, rows.rank);
  read_region(tensor, from, rows_of(layout.region(rows.rank).value(), rows), *files_, bytes);
  std::vector<std::byte> copies;
  for (const index::Region& fill : layout.fills(rows.rank)) {
    const index::Region wanted = rows_of(fill, rows);
    copies.resize(bytes.size());
    read_region(tensor, from, wanted, *files_, copies);
    const index::AxisMap copied = flattened(wanted);
    for (const index::Piece& piece : copied.pieces()) {
      const i64 begin = piece.local * bits(tensor.spec.dtype) / CHAR_BIT;
      const i64 end = piece.local_end() * bits(tensor.spec.dtype) / CHAR_BIT;
      std::memcpy(bytes.data() + begin, copies.data() + begin, static_cast<size_t>(end - begin));
    }
  }
}

const std::byte* GatheredFiles::read_pages(const engine::StoredRows& rows, i64 bytes,
                                           std::byte* buffer) const {
  if (!is_gathered_[rows.tensor]) return own_->read_pages(rows, bytes, buffer);
  join(rows, {buffer, static_cast<size_t>(bytes)});
  return buffer;
}

}  // namespace shardtool::api
