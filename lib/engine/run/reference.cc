#include "lib/engine/run/reference.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/engine/names.h"
#include "lib/engine/run/layer_entry.h"

namespace shardtool::engine {
namespace {

index::Interval both(const index::Piece& piece, index::Interval other) {
  return {std::max(piece.global, other.begin), std::min(piece.global_end(), other.end)};
}

/// Returns a part of the piece's image in the device's own numbering.
index::Interval local(const index::Piece& piece, index::Interval global) {
  const i64 shift = piece.local - piece.global;
  return {global.begin + shift, global.end + shift};
}

/// Returns the part of `block` (global rows and columns) inside both pieces.
MatrixBlock inside(const MatrixBlock& block, i64 element, const index::Piece& row,
                   const index::Piece& column) {
  const index::Interval rows = both(row, block.rows);
  const index::Interval columns = both(column, block.columns);
  if (rows.size() <= 0 || columns.size() <= 0) return {};
  const i64 offset =
      (rows.begin - block.rows.begin) * block.stride + columns.begin - block.columns.begin;
  return {local(row, rows), local(column, columns), block.bytes + offset * element, block.stride};
}

/// Returns true if the columns of a device are consecutive and without padding.
bool is_stretch(const index::AxisMap& columns) {
  return columns.pieces().size() == 1 && columns.pieces().front().size == columns.local_size();
}

/// Copies the block's rows in `row` and all columns of the device into `room`, with zeros for
/// padding.
MatrixBlock packed(const MatrixBlock& block, const MatrixProduct& part, const index::Piece& row,
                   std::vector<std::byte>& room) {
  const i64 element = bits(part.dtype) / 8;
  const index::Interval rows = both(row, block.rows);
  if (rows.size() <= 0) return {};
  const i64 width = part.columns.local_size();
  room.assign(static_cast<size_t>(rows.size() * width * element), std::byte{0});
  for (const index::Piece& column : part.columns.pieces()) {
    const MatrixBlock from = inside(block, element, row, column);
    for (i64 r = 0; r < from.rows.size(); ++r) {
      std::memcpy(room.data() + (r * width + from.columns.begin) * element,
                  from.bytes + r * from.stride * element,
                  static_cast<size_t>(from.columns.size() * element));
    }
  }
  return {local(row, rows), {0, width}, room.data(), width};
}

}  // namespace

template <class N>
Reference<N>::Reference(const Side& side, const Inputs& inputs, const Memories& memories)
    : side_(side),
      inputs_(inputs),
      fabric_(side.mesh, nullptr),
      bench_(first_of(memories)),
      run_(side, fabric_, inputs, memories) {}

template <class N>
void Reference<N>::begin_layer(const SideLayer& layer, const Wholes<N>& values) {
  layer_ = &layer;
  run_.begin_layer(*layer.layer,
                   layer_entry(values, layer.entry, side_.mesh, layer.devices, fabric_.own(),
                               inputs_.rows(), bench_),
                   layer.devices);
}

template <class N>
void Reference<N>::begin_step(size_t step) {
  const ops::Step& one = layer_->flow.steps[step];
  parts_.clear();
  for (const i64 rank : layer_->devices) {
    for (MatrixProduct& part : products_of(side_, *one.op, rank)) {
      parts_[{part.role, part.expert}].push_back(std::move(part));
    }
  }
  run_.begin_step(one);
}

template <class N>
void Reference<N>::begin(const MatrixProduct& whole) {
  for (MatrixProduct& part : parts_[{whole.role, whole.expert}]) {
    part.is_looked_up = whole.is_looked_up;
    run_.begin(part, part);
  }
}

template <class N>
void Reference<N>::multiply(const MatrixProduct& whole, const MatrixBlock& block) {
  for (const MatrixProduct& part : parts_.at({whole.role, whole.expert}))
    multiply_part(part, block);
}

/// The whole model runs on one device, which has the whole matrix.
template <class N>
void Reference<N>::multiply_there(const MatrixProduct& whole, const MatrixBlock& block,
                                  const std::byte* there) {
  for (const MatrixProduct& part : parts_.at({whole.role, whole.expert})) {
    run_.multiply_there(part, block, there);
  }
}

template <class N>
void Reference<N>::multiply_part(const MatrixProduct& part, const MatrixBlock& block) {
  const bool takes_any_columns = part.is_in_out || is_stretch(part.columns);
  std::vector<std::byte> room;
  for (const index::Piece& row : part.rows.pieces()) {
    if (!takes_any_columns) {
      const MatrixBlock all = packed(block, part, row, room);
      if (all.rows.size() > 0) run_.multiply(part, all);
      continue;
    }
    for (const index::Piece& column : part.columns.pieces()) {
      const MatrixBlock one = inside(block, bits(part.dtype) / 8, row, column);
      if (one.rows.size() > 0) run_.multiply(part, one);
    }
  }
}

template <class N>
void Reference<N>::end(const MatrixProduct& whole) {
  for (const MatrixProduct& part : parts_[{whole.role, whole.expert}]) run_.end(part);
}

template <class N>
void Reference<N>::end_step(size_t step) {
  run_.end_step(layer_->flow.steps[step]);
}

template <class N>
Part<N> Reference<N>::whole_of(Placed<N> parts, const std::vector<plan::Placement>& on) {
  fabric_.reduce(on, parts, bench_);
  return joined(bench_, parts, inputs_.rows());
}

template class Reference<Field>;
template class Reference<double>;
template class Reference<float>;

}  // namespace shardtool::engine
