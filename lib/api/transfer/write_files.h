#pragma once

#include <span>
#include <vector>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/exec/files/read_back.h"
#include "lib/exec/journal.h"
#include "lib/store/local/output_folder.h"

namespace shardtool::api {

/// A planned and checked run.
struct WriteRun {
  const LogicalCheckpoint& source;
  const TargetLayout& target;
  const OutputPlan& plan;
  std::span<const exec::TensorMove> moves;  ///< one per tensor of the target
  std::span<const size_t> order;            ///< move indices by position in the source
  const std::vector<bool>& wants_whole;     ///< per move: the destinations hold every element
  Extents extents = Extents::kOwn;
};

/// Returns true if `copied` is a complete result for tensor `t`: a hash per holder of the run, and
/// the digest of the whole tensor if the holders together want all of it.
bool is_complete(const WriteRun& run, size_t t, const exec::CopiedTensor& copied);

/// Appends the byte ranges of tensor `t` in the output files, one per holder, with their hashes.
void add_ranges(const WriteRun& run, size_t t, std::span<const kernels::Hash128> xxh3,
                std::vector<exec::WrittenRange>& ranges);

/// Returns the read order of the tensors: that of the source, regardless of names.
std::vector<size_t> source_order(std::span<const exec::TensorMove> moves);

/// Creates every file with its final size and header. Files of an interrupted run keep their
/// content.
std::vector<exec::TargetFile> create_files(const WriteRun& run, exec::IoMode mode,
                                           store::OutputFolder& folder);
/// Opens the same files after another process has created them.
std::vector<exec::TargetFile> open_files(const OutputPlan& plan, exec::IoMode mode,
                                         store::OutputFiles& files);

/// Zeroes the unfinished shards with padding of tensors that `is_mine` selects, in files of an
/// interrupted run: copying writes no padding, and the old content is unknown.
void clear_padded_shards(const WriteRun& run, const std::vector<bool>& is_mine,
                         const exec::FinishedTensors& finished,
                         std::span<const exec::TargetFile> targets);

/// Streams the unfinished tensors that `is_mine` selects and records them in the journal, except
/// shifted values. Padding that repeats elements is filled later, so a run interrupted during the
/// fill repeats those tensors. Throws the errors of exec::copy.
exec::FinishedTensors copy_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                                   const exec::FinishedTensors& finished,
                                   std::span<const exec::SourceFile> sources,
                                   std::span<const exec::TargetFile> targets,
                                   const exec::Resources& resources, exec::Journal& journal);

/// Completes the output after all tensors are copied: fills padding, checks that tied tensors are
/// equal, and writes the index, the side files and the manifest, with the files' SHA-256 if
/// requested. Returns all files of the output. Throws kInternal for an incomplete tensor, kTied,
/// and the errors of reading and writing.
std::vector<store::WrittenFile> complete_files(const WriteRun& run,
                                               std::span<const exec::SourceFile> sources,
                                               std::span<const exec::TargetFile> targets,
                                               std::vector<exec::CopiedTensor>& copied,
                                               const WriteOptions& options,
                                               store::OutputFolder& folder);

}  // namespace shardtool::api
