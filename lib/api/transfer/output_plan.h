#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/api/transform.h"
#include "lib/checkpoint/manifest.h"
#include "lib/checkpoint/shard_files.h"
#include "lib/exec/copy.h"
#include "lib/exec/move.h"

namespace shardtool::api {

/// A holder of a target tensor, by their numbers.
struct ShardNumber {
  std::int32_t tensor = 0;
  std::int32_t holder = 0;
};

/// The files that a layout is written into, and the slot of every holder in them.
struct OutputPlan {
  std::vector<checkpoint::PlannedFile> files;  ///< their members are numbers in shards_of_rank
  std::vector<std::vector<ShardNumber>> shards_of_rank;  ///< in the order of TargetLayout::ranks
  std::vector<std::vector<exec::Slot>> slots;            ///< per target tensor, per holder
  std::vector<std::vector<int>> files_of_rank;           ///< in the order of TargetLayout::ranks
  std::string index_text;                                ///< of a whole checkpoint in several files
};

/// Whether output files may share the disk space of the source's.
enum class Extents { kOwn, kShared };

/// Requires tensors sorted by name: the bytes of the output depend on nothing else, but that shared
/// extents move the place where data begins (checkpoint/shard_files.h).
OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target,
                       i64 max_file_size, Extents extents = Extents::kOwn);

/// The first bytes of a file of the plan: its header.
std::string file_header(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& output, size_t file);

/// Whether the values differ between holders on either side, so that they are copied one by one
/// (exec::copy_shifted).
bool is_shifted(const LogicalCheckpoint& source, const TargetTensor& tensor);

/// One move per target tensor.
std::vector<exec::TensorMove> plan_moves(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output);

/// The moves that fill padding with copies of elements, after plan_moves has run: what they write
/// is not of the tensor, so they have no digest.
std::vector<exec::TensorMove> plan_fills(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output);

/// The counts of the report.
TransformPlan summarize(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& output);

/// What the output says about itself: everything but its tensors, and one of these (of the
/// target's) as it was copied, or as it is planned where nothing is known of the data.
checkpoint::Manifest manifest_head(const LogicalCheckpoint& source, const TargetLayout& target,
                                   const OutputPlan& plan);
checkpoint::TensorRecord tensor_record(const LogicalCheckpoint& source, const TargetLayout& target,
                                       const OutputPlan& plan, size_t tensor,
                                       const exec::CopiedTensor& copied);

}  // namespace shardtool::api
