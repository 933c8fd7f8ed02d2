#pragma once

#include <span>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::api {

/// Records of one tensor in the parts of a split that have shards of it.
struct SplitTensor {
  std::vector<size_t> parts;                         ///< ascending
  std::vector<const format::TensorRecord*> records;  ///< per entry of `parts`
};

/// Throws kManifestInvalid unless the parts can be outputs of one split: all are shards of devices
/// of one mesh, made of one source with the same casts, and no rank is in two of them. Sources are
/// compared by sizes and headers, so that paths and names of files do not matter.
void check_one_split(std::span<const format::Checkpoint> parts);

/// Returns the tensors of all parts, sorted by name if there are several: a part lists only the
/// tensors of its ranks. Throws kManifestInvalid for a tensor whose dtype, shape, casts or digest
/// differ.
std::vector<SplitTensor> split_tensors(std::span<const format::Checkpoint> parts);

/// Names of the tensors that a part says are in others, and that none has; sorted.
std::vector<std::string> tensors_elsewhere(std::span<const format::Checkpoint> parts);

}  // namespace shardtool::api
