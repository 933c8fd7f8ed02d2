#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cast/cast.h"
#include "lib/base/checked.h"
#include "lib/base/dtype.h"
#include "lib/exec/files/io_mode.h"
#include "lib/exec/resources.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

/// Layout of output files with the checkpoint's own tensors and shardtool's file names.
inline constexpr std::string_view kPlainLayout = "plain";

/// Choice of mapping and mesh. With neither a file nor a preset, the preset is chosen by the
/// checkpoint's config.json (reshard: the mapping in the manifest).
struct MappingChoice {
  std::string path;                ///< a mapping file, or empty
  std::string preset;              ///< a preset's name, or empty
  std::optional<mesh::Mesh> mesh;  ///< replaces the mapping's mesh
  std::string layout;              ///< an entry of the mapping's "layouts", or empty
  /// A file with mesh axes of logical axes (with_axis_mapping), or empty.
  std::string axis_mapping;
  std::string config;  ///< path of the model's config.json; empty: the one in the weights' folder
  /// Engine's layout, "vllm@0.32" or "vllm", or "plain"; empty: that of the manifest's mapping.
  std::string engine_layout;
  bool require_even = false;
  bool allow_empty_shards = false;
  /// Dotted path and value, e.g. {"axes.heads.uneven", "balanced"}.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Has whole experts distributed over tp, or over ep and tp, instead of cutting each of them.
void keep_experts_whole(MappingChoice& choice, bool over_ep);

/// One of several shares of a run's work.
struct Share {
  int number = 0;  ///< from 0
  int of = 1;

  bool operator==(const Share&) const = default;
};

/// Formats as "3/8".
std::string format_share(const Share& share);

inline constexpr int kMostShares = 1 << 16;

/// Options for writing outputs; the same for split, merge and reshard.
struct WriteOptions {
  std::string output;
  /// Layout of the files: "plain", or an engine's, "vllm@0.32" or "vllm".
  std::string layout{kPlainLayout};
  i64 max_file_size = 50'000'000'000;
  exec::Resources resources;
  exec::IoMode io = exec::IoMode::kAuto;
  bool force = false;  ///< replace an existing output
  /// Continue an interrupted run of the same job. An output that is there is complete if it has the
  /// source's values (transfer/sources/complete_output.h); with other values it is not replaced
  /// without `force`.
  bool resume = false;
  bool dry_run = false;  ///< plan and check everything, but write no file
  bool copy_other_files = true;
  /// Element type of all floats in the output, BF16, F16 or F32; nullopt: the stored types.
  std::optional<Dtype> dtype = {};
  /// Unpack quantised weights to `dtype` or, without it, to the type that config.json names.
  bool dequantize = false;
  /// Read all shards back and compare them with their hashes: before the output is published, or
  /// for an output that --resume finds complete. A share reads its own part, and the share that
  /// publishes those of all.
  bool verify = false;
  bool sha256 = false;  ///< record the SHA-256 of every weights file, which is read again for it
  i64 journal_bytes = i64{4} << 30;  ///< maximum of finished bytes that a power failure may lose
  i64 worth_keeping = 64 << 20;      ///< a failed run with fewer finished bytes leaves no files
  /// Move this share of the bytes only, beside the processes that move the others. The output is
  /// published by the share that ends last, or by finish(). A share always continues what an
  /// earlier process of this run has done, and does nothing if the output is complete.
  std::optional<Share> share;
  /// Words of the command that this is, without the program's name and the share, for people who
  /// find the run interrupted (interrupted.h). May be empty.
  std::vector<std::string> command_line = {};
};

struct SplitOptions {
  std::string source;
  MappingChoice mapping;
  std::vector<i64> ranks;  ///< ranks to write; empty: all
  WriteOptions write;
};

struct MergeOptions {
  /// Output folders of one split, or files of another tool; together they must cover every tensor.
  std::vector<std::string> sources;
  bool compare_replicas = true;  ///< read every copy, not only the first
  WriteOptions write;
  /// Path of the model's config.json, which is then written in place of the sources'.
  std::string config = {};
};

struct ReshardOptions {
  std::vector<std::string> sources;  ///< may be empty with a plan, which has its own
  MappingChoice to;                  ///< without a mapping and a mesh: those of the shards
  std::vector<i64> ranks;
  bool compare_replicas = true;
  WriteOptions write;
  std::string plan = {};  ///< a plan file to apply exactly; `to` is then ignored
  /// A mapping file, or an entry of the "layouts" of `to`'s mapping (at_layout); empty: `to`.
  std::string to_layout = {};
};

/// An axis that did not divide, with the sizes of the ranks' shards along it.
struct UnevenAxis {
  std::string axis;
  std::vector<i64> sizes;
  std::string example_tensor;
  i64 tensors = 0;
};

/// A change of tensors in addition to the cut: padding, refined or shared blocks.
struct Alteration {
  std::string what;
  std::string example_tensor;
  i64 tensors = 0;
};

/// A tensor with parts that one offset per axis does not describe, so that the headers of the
/// output have no DCP_SHARDING_INFO and torch's HuggingFaceStorageReader would misplace them.
struct NotBoxes {
  std::string tensor;
  std::string reason;
};

/// Distribution of work over several shares: source bytes that each moves.
struct WorkShares {
  i64 shares = 1;
  i64 least = 0;
  i64 most = 0;
};

/// Requests of a run to the object stores that hold its source: ranges of data, without listings,
/// headers, config and tokenizer files, the comparison of replicas, and the samples of files for an
/// output of some of the ranks (exec::sampled_hashes: at most 32 requests a file).
struct SourceRequests {
  i64 requests = 0;               ///< that read
  i64 bytes = 0;                  ///< of these
  double read_amplification = 1;  ///< bytes read, of those that are needed
  i64 copies = 0;                 ///< further requests, which have the store copy data by itself
  i64 copied_bytes = 0;           ///< of these
};

/// Planned transfer.
struct TransformPlan {
  i64 tensors = 0;
  i64 split = 0;       ///< tensors that are cut, or that only some devices hold
  i64 replicated = 0;  ///< tensors that every device holds whole
  i64 dropped = 0;
  std::vector<std::string> mapping;  ///< "preset:llama" or a file, and a storage family
  std::string mesh;                  ///< of the destination, "tp=4"; empty for merge
  i64 ranks = 0;                     ///< ranks to write (0 for merge)
  bool has_all_ranks = false;        ///< these are all ranks of the mesh
  i64 files = 0;
  i64 bytes_in = 0;          ///< tensor bytes of the source, replicas once
  i64 bytes_out = 0;         ///< tensor bytes written, constants of the layout included
  i64 replicated_bytes = 0;  ///< bytes beyond one copy of everything
  i64 padding_bytes = 0;     ///< part of these that is padding: zeros, and copies made by a policy
  std::vector<UnevenAxis> uneven;
  std::vector<Alteration> alterations;
  std::optional<NotBoxes> not_boxes;
  std::optional<WorkShares> shares;  ///< of a run in shares
  /// Set by a dry run from an object store without computed tensors.
  std::optional<SourceRequests> requests;
};

/// Conversion of the floats to another type.
struct TransformCast {
  Dtype to = Dtype::kBF16;
  std::vector<Dtype> from;                    ///< types in the source, in the order of their names
  i64 tensors = 0;                            ///< cast
  i64 kept = 0;                               ///< of the type already, or not floats
  std::optional<kernels::CastCounts> counts;  ///< known after the writing
  std::string overflow_example;               ///< the first tensor with an overflow, or empty
};

/// Unpacking of the quantised weights.
struct TransformDequantize {
  std::string scheme;  ///< of one of them, by config.json
  Dtype to = Dtype::kBF16;
  i64 weights = 0;
  i64 stored = 0;                             ///< tensors behind them
  std::vector<std::string> left_out;          ///< scales of activations and caches
  std::optional<kernels::CastCounts> counts;  ///< known after the writing
  std::string overflow_example;               ///< the first weight with an overflow, or empty
};

/// Result of the writing.
struct TransformWritten {
  i64 bytes = 0;         ///< all files, headers included
  i64 shared_bytes = 0;  ///< part of these that shares the source's disk space
  /// Part of these that the object store copied from the source, unread by this machine.
  i64 copied_by_store = 0;
  i64 files = 0;
  double seconds = 0;
  double bytes_per_second = 0;
  i64 peak_rss_bytes = 0;
};

/// Traffic among devices when a plan is applied.
struct TransformMoved {
  i64 bytes_moved = 0;
  i64 bytes_kept = 0;  ///< bytes that the device already had
};

/// Result of one share.
struct TransformShare {
  Share share;
  i64 tensors = 0;
  i64 bytes = 0;  ///< of their shards
  double seconds = 0;
  double bytes_per_second = 0;
  i64 peak_rss_bytes = 0;
  bool published = false;    ///< the output is complete
  std::vector<int> missing;  ///< numbers of the shares that have not ended
};

/// Finished work of an interrupted run.
struct TransformResumed {
  i64 tensors = 0;
  i64 bytes = 0;    ///< of their shards, read back and verified
  i64 damaged = 0;  ///< finished tensors that had changed and were written again
};

struct TransformReport {
  TransformPlan plan;
  std::optional<TransformDequantize> dequantized;
  std::optional<TransformCast> cast;
  std::optional<TransformMoved> moved;
  /// True if a resumed run had no work left: the manifest equals the run's, with the digests of the
  /// source, and the files have their sizes.
  bool was_complete = false;
  std::optional<i64> bytes_verified;  ///< read back and equal to their hashes
  std::optional<TransformResumed> resumed;
  std::optional<TransformWritten> written;  ///< absent after a dry run and after a share
  std::optional<TransformShare> share;
  std::string output;
  i64 replicas_compared = 0;  ///< copies read and found equal
  std::vector<std::string> warnings;
};

/// Splits an unsharded checkpoint into the shards of every rank. Throws mapping, input, output and
/// resource errors; the output is published complete or not at all. With `dtype`, floats are cast
/// first, by this and the next two: see kernels/cast.h for the rounding, transfer/cast_values.h for
/// the tensors. With `dequantize`, quantised weights are unpacked, see dequantize/dequantize.h.
TransformReport split(const SplitOptions& options);
/// Merges shards into one checkpoint: merge(split(x)) = x, tensor by tensor, byte for byte, but for
/// tensors that the mapping dropped.
TransformReport merge(const MergeOptions& options);
/// Converts shards of one layout to another, directly from file to file: reshard(split(x, A), B) =
/// split(x, B), byte for byte. An unsharded checkpoint is a layout, too. With a plan, executes
/// exactly that plan or throws kPlanInvalid or kInputChanged.
TransformReport reshard(const ReshardOptions& options);

}  // namespace shardtool::api
