#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/move.h"
#include "lib/exec/shifted.h"
#include "lib/format/checkpoint.h"
#include "lib/index/axis_map.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

class UnpackedTensor;

/// Place of a tensor in a stored one that a rule of "read" takes apart.
struct StoredPart {
  std::string tensor;    ///< name of the stored one
  std::vector<i64> at;   ///< index along its first axes, which stack matrices
  size_t axis = 0;       ///< of the stored tensor; it holds the parts
  index::AxisMap along;  ///< from the indices of that axis to the tensor's own
};

/// A tensor independent of its storage, with its holders: one for a whole checkpoint, one per shard
/// for our outputs, one per chunk for checkpoints in chunks.
struct LogicalTensor {
  TensorSpec spec;
  exec::MoveSide side;
  std::vector<i64> ranks;               ///< of the holders; empty unless is_sharded()
  std::optional<std::uint64_t> digest;  ///< from the manifest
  /// From the manifests: one of each part that has shards of it, in the order of the holders.
  std::vector<const format::TensorRecord*> records = {};
  std::vector<index::ValueShift> shifts;  ///< per holder; empty: plain values
  std::optional<Dtype> cast_from = {};    ///< type in the files if `spec` shows another one
  std::shared_ptr<const StoredPart> part_of = {};  ///< null: stored by itself
  /// Not null: computed from tensors in LogicalCheckpoint::stored; `side` is one whole holder.
  std::shared_ptr<const UnpackedTensor> unpacked = {};

  Dtype stored_dtype() const { return cast_from.value_or(spec.dtype); }
  /// Record of the first part, whose cuts and casts are those of all, or null.
  const format::TensorRecord* record() const { return records.empty() ? nullptr : records.front(); }
};

/// Constant in a file of an output (format::ConstantRecord).
struct LogicalConstant {
  const format::ConstantRecord* record = nullptr;
  exec::Slot slot;
};

/// One or more opened folders as one set of logical tensors. Whole checkpoints, shards and chunks
/// are alike: a checkpoint is a layout whose holders are (file, tensor) slots.
struct LogicalCheckpoint {
  std::vector<format::Checkpoint> parts;  ///< without their own tensors, moved to `tensors`
  std::vector<exec::SurveyedFile> files;  ///< files of all parts; Slot::file is an index
  std::vector<LogicalTensor> tensors;
  std::vector<LogicalConstant> constants;  ///< no part of the checkpoint's content
  bool is_dequantized = false;             ///< config() shows no quantisation
  bool is_config_alone = false;            ///< no tensor is stored (open_config_alone)
  std::vector<LogicalTensor> stored;       ///< tensors behind those that are computed
  std::vector<std::string> left_out;       ///< names of tensors that are not shown
  /// Names of tensors of the split that only ranks hold whose folders are not among the parts.
  std::vector<std::string> elsewhere;
  /// By file of a checkpoint that is no output (exec::sampled_hashes), for an output of some of the
  /// ranks; else empty.
  std::vector<std::string> sampled;

  /// True for the shards of devices. A checkpoint in chunks is whole: its holders are no devices.
  bool is_sharded() const {
    const auto& manifest = parts.front().manifest;
    return manifest && !manifest->has_chunks;
  }
  std::vector<TensorSpec> specs() const;
  std::vector<std::string> warnings() const;
  /// Loads the config.json in the weights' folder; nullopt if there is none. Throws kConfig.
  std::optional<mapping::ModelConfig> config() const;
  /// Loads a config.json as config() does.
  mapping::ModelConfig load_config(const std::string& path) const;
};

/// The checkpoint's tensors, sorted by name. Valid as long as its tensors are.
using TensorsByName = std::map<std::string_view, const LogicalTensor*>;
TensorsByName tensors_by_name(const LogicalCheckpoint& checkpoint);

/// Opens every location and shows the tensors that its files have. Several locations must be
/// outputs of one split: same mesh and source, equal dtypes, shapes and casts, no rank in two of
/// them. Each has the tensors of its ranks, and together they have all. Throws the errors of
/// open_checkpoint and require_locations, and kManifestInvalid.
LogicalCheckpoint open_stored(const std::vector<std::string>& locations);

/// Throws kCoverage for files of single ranks (format::kFilesOfRanks), which no command can take
/// for a model.
void refuse_files_of_ranks(const LogicalCheckpoint& source);

/// Throws kManifestInvalid for a manifest with a tensor that lacks its digest
/// (format::without_digest).
void require_digests(const LogicalCheckpoint& source);

/// Joins folders that are already open. Requires K2 of a whole checkpoint; its files may be unread.
/// Throws kManifestInvalid.
LogicalCheckpoint join_parts(std::vector<format::Checkpoint> parts);

}  // namespace shardtool::api
