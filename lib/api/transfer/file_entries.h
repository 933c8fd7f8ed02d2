#pragma once

#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"

namespace shardtool::api {

/// A holder of a target tensor, by index.
struct ShardNumber {
  std::int32_t tensor = 0;
  std::int32_t holder = 0;
};

/// Tensor of one rank's files that an output tensor (mapping::OutputTensor) gives.
struct FileEntry {
  size_t output = 0;  ///< index into *TargetLayout::output
  Dtype dtype = Dtype::kF32;
  Shape shape;                      ///< as in the file
  std::vector<ShardNumber> shards;  ///< in the order of their bytes; empty for a constant
};

/// Returns the entries of every rank, in the order of TargetLayout::ranks and of the output
/// tensors. Requires target.output. Throws kStrategy if a rank holds only some of the parts of a
/// concatenation, or parts of different inner axes.
std::vector<std::vector<FileEntry>> file_entries(const LogicalCheckpoint& source,
                                                 const TargetLayout& target);

/// Record of an output tensor with a constant.
format::ConstantRecord constant_record(const mapping::OutputTensor& output);

}  // namespace shardtool::api
