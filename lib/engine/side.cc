#include "lib/engine/side.h"

#include <fmt/format.h>

#include <utility>

#include "lib/base/error.h"

namespace shardtool::engine {
namespace {

/// Reads rows of a device's part of a tensor. `region` is that of the rows together.
ops::StoredWeight read_rows(const Side& side, const StoredRows& rows, index::Region region) {
  const TensorSpec& tensor = side.tensors[rows.tensor];
  if (side.is_turned(rows.tensor)) {
    throw Error(ErrorCode::kUnsupported, "a packed weight is used for something else than a GEMM")
        .tensor(tensor.name);
  }
  ops::StoredWeight weight{std::move(region), tensor.dtype, {}};
  const Shape shape = index::local_shape(weight.region);
  weight.bytes.resize(static_cast<size_t>(byte_size(weight.dtype, shape).value()));
  side.weights->read(rows, weight.bytes);
  return weight;
}

}  // namespace

Side Side::stored() const {
  Side side = *this;
  if (stored_weights == nullptr) return side;
  side.layouts = stored_layouts;
  side.weights = stored_weights;
  side.stored_layouts = nullptr;
  side.stored_weights = nullptr;
  return side;
}

index::Region Side::region(size_t tensor, i64 rank) const {
  auto region = layouts(tensor).region(rank);
  if (region) return *std::move(region);
  throw Error(ErrorCode::kUnsupported,
              fmt::format("rank {} lacks a tensor that it computes with", rank))
      .tensor(tensors[tensor].name);
}

ops::StoredWeight Side::read(size_t tensor, i64 rank) const {
  index::Region part = region(tensor, rank);
  const i64 rows = part.empty() ? 1 : part.front().local_size();
  return read_rows(*this, {tensor, rank, -1, 0, rows}, std::move(part));
}

ops::StoredWeight Side::read_row(size_t tensor, i64 rank, i64 row) const {
  index::Region part = region(tensor, rank);
  part.erase(part.begin());
  return read_rows(*this, {tensor, rank, -1, row, row + 1}, std::move(part));
}

bool Side::is_turned(size_t tensor) const {
  const auto found = unpacked.find(tensor);
  return found != unpacked.end() && found->second.is_turned;
}

}  // namespace shardtool::engine
