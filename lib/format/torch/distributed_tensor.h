#pragma once

#include <vector>

#include "lib/format/checkpoint.h"
#include "lib/format/torch/tensor_slot.h"

namespace shardtool::format::torch {

/// A rank's part of a distributed tensor, as torch.save writes it.
struct DistributedSlot {
  TensorSlot local;
  PartOf part;  ///< `whole` is set
};

/// True if the value is a DTensor (torch/distributed/tensor/_api.py) or a ShardedTensor
/// (torch/distributed/_shard/sharded_tensor/api.py), of PyTorch 2.4 to 2.13.
bool is_distributed(PickleValue value);

/// Decodes the rank's parts, at least one. Requires is_distributed.
///
/// A DTensor has one. Its place follows from the mesh, the rank's coordinate on it and the
/// placements: Shard cuts as torch.chunk does, _StridedShard is cut after the mesh axes that follow
/// it. A ShardedTensor has any number of shards, each with its place; a part without elements
/// stands for none.
///
/// Throws kUnsupported for pending sums and other placements, kTensorInvalid for contradictions
/// such as a local tensor of another shape, and the errors of tensor_slot.
std::vector<DistributedSlot> distributed_slots(PickleValue value, const Archive& archive);

}  // namespace shardtool::format::torch
