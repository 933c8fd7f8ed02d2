#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/checked.h"
#include "lib/comm/launch.h"
#include "lib/exec/io_mode.h"
#include "lib/exec/resources.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

/// Which mapping applies, and over which mesh. With neither a file nor a preset, the preset is
/// chosen from the checkpoint's config.json (reshard: the mapping that the manifest holds).
struct MappingChoice {
  std::string path;                ///< a mapping file, or empty
  std::string preset;              ///< a preset's name, or empty
  std::optional<mesh::Mesh> mesh;  ///< replaces the mapping's mesh
  std::string layout;              ///< an entry of the mapping's "layouts", or empty
  std::string config;  ///< the model's config.json, or empty: the one beside the weights
  bool require_even = false;
  bool allow_empty_shards = false;
  /// Dotted path and value, e.g. {"axes.heads.uneven", "balanced"}.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// How outputs are written; the same for split, merge and reshard.
struct WriteOptions {
  std::string output;
  i64 max_file_size = 50'000'000'000;
  exec::Resources resources;
  exec::IoMode io = exec::IoMode::kAuto;
  bool force = false;    ///< replace an existing output
  bool resume = false;   ///< go on with what an interrupted run of the same job left
  bool dry_run = false;  ///< plan and check everything, write nothing
  bool copy_side_files = true;
  /// Read all shards back and compare them with their hashes: before the output appears, or of an
  /// output that --resume finds complete.
  bool verify = false;
  bool sha256 = false;  ///< record the SHA-256 of every weights file; each is read again for it
  i64 journal_bytes = i64{4} << 30;  ///< finished bytes that a power cut may cost, at most
  i64 worth_keeping = 64 << 20;      ///< finished bytes below which a failed run leaves nothing
  /// The processes that share the work, when a launcher started several.
  std::optional<comm::Launch> launch;
};

struct SplitOptions {
  std::string source;
  MappingChoice mapping;
  std::vector<i64> ranks;  ///< those to write; empty means all
  WriteOptions write;
};

struct MergeOptions {
  /// Output folders of one split: together they hold every rank (or enough of them).
  std::vector<std::string> sources;
  bool compare_replicas = true;  ///< read every copy, not only the first
  WriteOptions write;
};

struct ReshardOptions {
  std::vector<std::string> sources;  ///< may be empty with a plan: then those of the plan
  MappingChoice to;
  std::vector<i64> ranks;
  bool compare_replicas = true;
  WriteOptions write;
  std::string plan = {};  ///< a plan file, which is applied exactly; then `to` is not read
};

/// An axis that did not divide, with the sizes that the devices got.
struct UnevenAxis {
  std::string axis;
  std::vector<i64> sizes;
  std::string example_tensor;
  i64 tensors = 0;
};

/// Something that is done to tensors beside cutting them: padding, refined or shared blocks.
struct Alteration {
  std::string what;
  std::string example_tensor;
  i64 tensors = 0;
};

/// How several processes share the work: the bytes of the source that each moves.
struct WorkShares {
  i64 processes = 1;
  i64 least = 0;
  i64 most = 0;
};

/// What will be moved.
struct TransformPlan {
  i64 tensors = 0;
  i64 split = 0;       ///< tensors that are cut, or that only some devices hold
  i64 replicated = 0;  ///< tensors that every device holds whole
  i64 dropped = 0;
  std::vector<std::string> mapping;  ///< "preset:llama" or a file, and a family of stored tensors
  std::string mesh;                  ///< of the destination, "tp=4"; empty for merge
  i64 ranks = 0;                     ///< that are written (0 for merge)
  i64 files = 0;
  i64 bytes_in = 0;          ///< tensor bytes of the source, replicas once
  i64 bytes_out = 0;         ///< tensor bytes written
  i64 replicated_bytes = 0;  ///< written beyond one copy of everything
  i64 padding_bytes = 0;     ///< of these, that hold no element: zeros, and copies made by a policy
  std::vector<UnevenAxis> uneven;
  std::vector<Alteration> alterations;
  std::optional<WorkShares> shares;  ///< of the processes of a launch
};

/// What was moved.
struct TransformWritten {
  i64 bytes = 0;         ///< of all files, headers included
  i64 shared_bytes = 0;  ///< of these, that share the source's disk space and were not copied
  i64 files = 0;
  double seconds = 0;
  double bytes_per_second = 0;
  i64 peak_rss_bytes = 0;
};

/// What changed hands among devices, of a plan that was applied.
struct TransformMoved {
  i64 bytes_moved = 0;
  i64 bytes_kept = 0;  ///< that their device had already
};

/// What an interrupted run had finished.
struct TransformResumed {
  i64 tensors = 0;
  i64 bytes = 0;    ///< of their shards, read back and found right
  i64 damaged = 0;  ///< finished tensors that were not right any more, and were written again
};

struct TransformReport {
  TransformPlan plan;
  std::optional<TransformMoved> moved;
  /// Resumed, and there was nothing left to do: the manifest is the one that the run would write,
  /// and the files have their sizes.
  bool was_complete = false;
  std::optional<i64> bytes_verified;  ///< read back and equal to their hashes
  std::optional<TransformResumed> resumed;
  std::optional<TransformWritten> written;  ///< absent after a dry run
  std::string output;
  i64 replicas_compared = 0;  ///< copies read and found equal
  std::vector<std::string> warnings;
};

/// A whole checkpoint into one part per device. Throws mapping, input, output and resource errors;
/// the output appears complete or not at all.
TransformReport split(const SplitOptions& options);
/// Shards back into one checkpoint: merge(split(x)) = x, tensor by tensor, byte for byte.
TransformReport merge(const MergeOptions& options);
/// Shards of one layout into shards of another, straight from file to file:
/// reshard(split(x, A), B) = split(x, B), byte for byte. A whole checkpoint is a layout, too. With
/// a plan, exactly what was planned or nothing: throws kPlanInvalid and kInputChanged.
TransformReport reshard(const ReshardOptions& options);

}  // namespace shardtool::api
