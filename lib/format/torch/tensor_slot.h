#pragma once

#include <optional>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/format/torch/archive.h"

namespace shardtool::format::torch {

/// Bytes of a tensor in a file: row-major and without gaps.
struct TensorSlot {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  i64 offset = 0;  ///< absolute
  i64 bytes = 0;
};

/// Most axes of a tensor of PyTorch.
inline constexpr size_t kMostAxes = 64;

/// Extents of a tuple, a list or a torch.Size of at most kMostAxes integers that are not negative;
/// nullopt for other values.
std::optional<Shape> extents_of(PickleValue value);

/// True if the value is a tensor of torch, of any kind.
bool is_tensor(PickleValue value);

/// Decodes a tensor: its dtype, its shape and its bytes inside of a storage. Requires is_tensor.
/// Throws kUnsupported for tensors that are not row-major without gaps, and for sparse, quantised,
/// conjugated, nested, meta and distributed ones; kTensorInvalid for a tensor that leaves its
/// storage or a storage that is not in the file as the pickle says.
TensorSlot tensor_slot(PickleValue value, const Archive& archive);

}  // namespace shardtool::format::torch
