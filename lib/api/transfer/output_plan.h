#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/file_entries.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/api/transform.h"
#include "lib/exec/copy.h"
#include "lib/exec/move.h"
#include "lib/format/manifest/manifest.h"
#include "lib/format/writer.h"

namespace shardtool::api {

/// Bytes of a constant in an output file.
struct ConstantPlace {
  exec::Slot slot;
  size_t output = 0;  ///< index into *TargetLayout::output
};

/// Output files of a layout, and the slot of every holder in them.
struct OutputPlan {
  /// Members index entries_of_rank if the layout has output tensors, else shards_of_rank.
  std::vector<format::PlannedFile> files;
  std::vector<std::vector<ShardNumber>> shards_of_rank;  ///< in the order of TargetLayout::ranks
  std::vector<std::vector<FileEntry>> entries_of_rank;   ///< in the same order, or empty
  std::vector<std::vector<exec::Slot>> slots;            ///< per target tensor, per holder
  std::vector<std::vector<int>> files_of_rank;           ///< in the order of TargetLayout::ranks
  std::vector<ConstantPlace> constants;
  std::string summary_name;  ///< file that describes the others (write_summary), or empty
};

/// Permission for output files to share the disk space of the source's.
enum class Extents { kOwn, kShared };

/// Requires tensors sorted by name. The output bytes depend only on the arguments, except that
/// shared extents move the start of the data (format/shard_files.h).
OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target,
                       i64 max_file_size, Extents extents = Extents::kOwn);

/// Writes all bytes of a file of the plan that are not data, by ascending offset.
void write_file_frame(const LogicalCheckpoint& source, const TargetLayout& target,
                      const OutputPlan& output, size_t file, const format::FrameSink& write);

/// Writes the text of OutputPlan::summary_name.
void write_summary(const LogicalCheckpoint& source, const TargetLayout& target,
                   const OutputPlan& output, const format::safetensors::Sink& write);

/// True if the values differ between holders on either side and must be copied one by one
/// (exec::copy_shifted).
bool is_shifted(const LogicalCheckpoint& source, const TargetTensor& tensor);

/// Returns one move per target tensor.
std::vector<exec::TensorMove> plan_moves(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output);

/// Returns the moves that fill a tensor's padding with copies of elements, to run after its move.
/// They have no digest: padding is not part of the tensor.
std::vector<exec::TensorMove> plan_fills(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output,
                                         size_t tensor);

/// Returns the counts of the report.
TransformPlan summarize(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& output);

}  // namespace shardtool::api
