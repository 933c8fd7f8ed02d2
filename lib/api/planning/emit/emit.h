#pragma once

#include <string>

#include "lib/api/planning/emit/emit_format.h"
#include "lib/api/planning/emit/emitted_layout.h"

namespace shardtool::api {

/// Writes the DeviceMesh and the placements of every tensor for torch.distributed.tensor:
///
///     {"meshes": [{"ranks": [0, 1], "shape": [2], "dim_names": ["tp"]}],
///      "tensors": {"lm_head.weight": {"mesh": 0, "shape": [8, 4], "dtype": "bfloat16",
///                                     "placements": ["Shard(0)"]}}}
///
/// A tensor that only some devices hold has a mesh of these. Throws kUnsupported with the tensor's
/// name unless Shard, which cuts as torch.chunk does, gives every rank what the layout gives it;
/// also for elements of less than a byte.
std::string dtensor_json(const EmittedLayout& layout);

/// Writes, for every tensor, the two descriptors that NCCL's contrib/nccl_m2n takes
/// (ncclReshardWithWindow), with the names of their fields: ranks of the source come first.
///
///     {"tensors": [{"name": "w", "ndims": 2, "dtype": "ncclBfloat16",
///                   "src": {"localShape": [4, 4],
///                           "mesh": {"dims": [1, 2], "startRank": 0, "placement": [-1, 0]}},
///                   "dst": ...}]}
///
/// Throws kUnsupported with the tensor's name for more than three axes, cuts along more than one
/// axis, unequal parts, parts in several pieces, devices that are not consecutive, and types that
/// the library does not know.
std::string nccl_m2n_json(const EmittedLayout& from, const EmittedLayout& to);

/// Writes the placement of a model's weights that mooncake.reshard reads
/// (weight_placement_from_json). Parts may be unequal and in several pieces. Throws kUnsupported
/// with the tensor's name for elements of less than a byte, scalars, padding, parts that are empty
/// or repeated along a part of a mesh axis, and axes that its rules do not allow: only tp and ep
/// cut, ep the first axis alone; kUsage for mesh axes other than dp, pp, ep and tp.
std::string mooncake_json(const EmittedLayout& layout, const std::string& model);

/// Writes what a format takes of a layout and, if it is not null, of the layout before it. Throws
/// kUsage if a reshard is needed and there is none.
std::string emitted(EmitFormat format, const EmittedLayout* from, const EmittedLayout& to,
                    const std::string& model);

}  // namespace shardtool::api
