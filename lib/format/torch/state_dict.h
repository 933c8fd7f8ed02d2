#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/format/torch/archive.h"
#include "lib/format/torch/distributed_tensor.h"
#include "lib/format/torch/tensor_slot.h"

namespace shardtool::format::torch {

/// Tensor of a saved object, or one of several parts of a tensor that have its name. Keys of nested
/// dicts and indices of lists are joined by dots:
/// {"model": {"a.weight": t}} holds "model.a.weight".
struct NamedSlot {
  std::string name;
  TensorSlot slot;
  std::optional<PartOf> part = {};  ///< of a distributed tensor: place of the slot in it
};

struct StateDict {
  std::vector<NamedSlot> tensors;  ///< in the order of the file; storages may be shared
  std::vector<OtherEntry> others;  ///< parts without any tensor in them
};

/// Finds the tensors of a saved dict, list or tuple, however deep. Throws the errors of tensor_slot
/// and distributed_slots with the tensor's name; kUnsupported for a tensor inside an object of
/// another class, for data that is no tensor and for an object without tensors; kTensorInvalid for
/// a name that occurs twice or is not UTF-8; kLimit for values that nest too deep, are shared at
/// too many places or have too long names.
StateDict state_dict(const Archive& archive, const std::string& path);

}  // namespace shardtool::format::torch
