#pragma once

#include <span>
#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/exec/journal.h"
#include "lib/exec/read_back.h"
#include "lib/io/output_folder.h"

namespace shardtool::api {

/// A run that is planned and checked: what comes from where and goes where.
struct Run {
  const LogicalCheckpoint& source;
  const TargetLayout& target;
  const OutputPlan& plan;
  std::span<const exec::TensorMove> moves;  ///< one per tensor of the target
  std::span<const size_t> order;            ///< of the moves, by place in the source
  const std::vector<bool>& wants_whole;     ///< per move: the destinations hold every element
  Extents extents = Extents::kOwn;
};

/// Returns whether `copied` can be the result of copying tensor `t` to all holders of the run: a
/// hash per holder, and the digest of the whole tensor where the holders together want all of it.
bool is_complete(const Run& run, size_t t, const exec::CopiedTensor& copied);

/// Appends the bytes of every holder of tensor `t` in the output's files, with their hashes.
void add_ranges(const Run& run, size_t t, std::span<const kernels::Hash128> xxh3,
                std::vector<exec::WrittenRange>& ranges);

/// The order in which tensors are read: that of the source, whatever the order of their names.
std::vector<size_t> source_order(std::span<const exec::TensorMove> moves);

/// Creates every file in its final size, with its header. Files of an interrupted run keep their
/// content.
std::vector<exec::TargetFile> create_files(const Run& run, exec::IoMode mode,
                                           io::OutputFolder& folder);
/// The same files, which another process created.
std::vector<exec::TargetFile> open_files(const OutputPlan& plan, exec::IoMode mode,
                                         io::OutputFiles& files);

/// Zeroes the shards with padding of tensors that `is_mine` and that are not finished, in files
/// that an interrupted run left: copying writes no padding, and nobody knows what is there.
void clear_padded_shards(const Run& run, const std::vector<bool>& is_mine,
                         const exec::FinishedTensors& finished,
                         std::span<const exec::TargetFile> targets);

/// Streams the tensors of the run that `is_mine` and that are not finished, and notes in the
/// journal what is: all but values that devices store shifted. Padding that repeats elements is
/// filled later, so a run that ends while it is filled does those tensors again.
/// Throws what exec::copy throws.
exec::FinishedTensors copy_tensors(const Run& run, const std::vector<bool>& is_mine,
                                   const exec::FinishedTensors& finished,
                                   std::span<const exec::SourceFile> sources,
                                   std::span<const exec::TargetFile> targets,
                                   const exec::Resources& resources, exec::Journal& journal);

/// Writes the rest, once all tensors are copied: fills padding, checks that tied tensors are equal,
/// and writes the index, the side files and the manifest, with the files' SHA-256 where the options
/// want it. Returns all files of the output. Throws kInternal for a tensor that is not complete,
/// kTied, and what reading and writing throw.
std::vector<io::WrittenFile> complete_files(const Run& run,
                                            std::span<const exec::SourceFile> sources,
                                            std::span<const exec::TargetFile> targets,
                                            std::vector<exec::CopiedTensor>& copied,
                                            const WriteOptions& options, io::OutputFolder& folder);

}  // namespace shardtool::api
