#pragma once

#include <string>
#include <vector>

#include "shardtool/api/logical_checkpoint.h"
#include "shardtool/api/target_layout.h"
#include "shardtool/api/transform.h"
#include "shardtool/checkpoint/manifest.h"
#include "shardtool/checkpoint/shard_files.h"
#include "shardtool/exec/copy.h"
#include "shardtool/exec/move.h"

namespace shardtool::api {

/// The files that a layout is written into, and the slot of every holder in them.
struct OutputPlan {
  std::vector<checkpoint::PlannedFile> files;
  std::vector<std::vector<exec::Slot>> slots;   ///< per target tensor, per holder
  std::vector<std::vector<int>> files_of_rank;  ///< in the order of TargetLayout::ranks
  std::string index_text;                       ///< of a whole checkpoint in several files
};

/// Whether output files may share the disk space of the source's.
enum class Extents { kOwn, kShared };

/// Requires tensors sorted by name: the bytes of the output depend on nothing else, but that shared
/// extents move the place where data begins (checkpoint/shard_files.h).
OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target,
                       i64 max_file_size, Extents extents = Extents::kOwn);

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

/// What the output says about itself; `copied` is in the order of the target's tensors.
checkpoint::Manifest make_manifest(const LogicalCheckpoint& source, const TargetLayout& target,
                                   const OutputPlan& plan,
                                   std::span<const exec::CopiedTensor> copied);

}  // namespace shardtool::api
