#include "lib/engine/side.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::engine {

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
  if (is_turned(tensor)) {
    throw Error(ErrorCode::kUnsupported, "a packed weight is used for something else than a GEMM")
        .tensor(tensors[tensor].name);
  }
  ops::StoredWeight weight{region(tensor, rank), tensors[tensor].dtype, {}};
  const Shape shape = index::local_shape(weight.region);
  weight.bytes.resize(static_cast<size_t>(byte_size(weight.dtype, shape).value()));
  weights->read({tensor, rank, -1, 0, shape.empty() ? 1 : shape[0]}, weight.bytes);
  return weight;
}

bool Side::is_turned(size_t tensor) const {
  const auto found = unpacked.find(tensor);
  return found != unpacked.end() && found->second.is_turned;
}

}  // namespace shardtool::engine
