#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
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
/// Same by position in the output: the tensors of a file in their order there, the files one after
/// another; a tensor in several files comes with the first of them.
std::vector<size_t> output_order(std::span<const exec::TensorMove> moves);

/// Opens the file of an output with this name, or creates it. The reference stays valid.
using OpenFile = std::function<store::File&(const std::string& name)>;

/// Policy for the content of files that `open` finds.
enum class FoundFiles { kNone, kKept };

/// Opens every file with its final size and, where the source's space may be shared, with leave to
/// do so.
std::vector<exec::TargetFile> open_files(const WriteRun& run, exec::IoMode mode, FoundFiles found,
                                         const OpenFile& open);
/// Writes all bytes of the files that belong to no tensor of the source: headers and constants.
void write_frames(const WriteRun& run, std::span<const exec::TargetFile> targets);

/// A file that an output copies from the source: the bytes of `from`, or `text` if it changes.
struct OtherFile {
  std::string name;
  std::string from;
  std::optional<std::string> text = {};
};
/// Returns the files that the options copy from the source. config.json is the one that decided the
/// layout, so that the output's mapping resolves to the same layout again.
std::vector<OtherFile> other_files(const WriteRun& run, const WriteOptions& options);

/// Writes the files beside the weights: those that the options copy from the source, and the index.
std::vector<store::WrittenFile> write_other_files(const WriteRun& run, const WriteOptions& options,
                                                  const OpenFile& open);
/// Writes them into a folder.
std::vector<store::WrittenFile> write_other_files(const WriteRun& run, const WriteOptions& options,
                                                  const std::string& folder);

/// Zeroes the padding in all shards of tensor `t`, where its old content is unknown: copying writes
/// only the padding inside of rows. Other bytes stay, so that another process may write them.
void clear_padding(const WriteRun& run, size_t t, std::span<const exec::TargetFile> targets);

/// Called with a tensor that is wholly written and the bytes of the whole tensor, from several
/// threads.
using OnFinished = std::function<void(size_t tensor, const exec::CopiedTensor& copied, i64 bytes)>;

/// Copies the unfinished tensors that `is_mine` selects, then fills their padding, and tells of
/// each, except of shifted values. Several processes may copy one tensor: all write the same bytes,
/// except that padding which is filled is zero until then, see ShareRecord::filled. Throws the
/// errors of exec::copy and exec::fill.
exec::FinishedTensors copy_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                                   const exec::FinishedTensors& finished,
                                   std::span<const exec::SourceFile> sources,
                                   std::span<const exec::TargetFile> targets,
                                   const exec::Resources& resources, const OnFinished& on_finished);

/// Throws kInternal if a byte of any tensor may be missing, so that an incomplete output is never
/// published, and kTied.
void check_copied(const WriteRun& run, std::span<const exec::CopiedTensor> copied);

/// Completes the output after all tensors are copied: checks them, and writes the index, the side
/// files and the manifest, with the files' SHA-256 if requested. Returns all files of the output.
/// Throws kInternal for an incomplete tensor, kTied, and the errors of reading and writing.
std::vector<store::WrittenFile> complete_files(const WriteRun& run,
                                               std::span<const exec::CopiedTensor> copied,
                                               const WriteOptions& options,
                                               store::OutputFolder& folder);

/// Digest of a tensor before the run's cast; nullopt if it is not written, or not whole.
using DigestOf = std::function<std::optional<std::uint64_t>(const std::string& name)>;
/// Throws kTied unless tensors declared tied have equal digests.
void check_tied(const std::vector<std::vector<std::string>>& tied, const DigestOf& digest);

/// Reads each complete file of the manifest back to record its SHA-256.
void add_file_hashes(format::Manifest& manifest, const std::string& folder,
                     const exec::Resources& resources);

using RecordOf = std::function<format::TensorRecord(size_t tensor)>;
/// Writes manifest.json with `count` tensors to a new file. Returns its name and size.
store::WrittenFile write_manifest(const format::Manifest& head, size_t count,
                                  const RecordOf& record, store::File& file, exec::IoMode mode);

}  // namespace shardtool::api
