#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/exec/data_file.h"
#include "lib/exec/move.h"
#include "lib/exec/shifted.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// A tensor as people think of it, and the holders that have it: one for a whole checkpoint, one
/// per shard for our own outputs.
struct LogicalTensor {
  TensorSpec spec;
  exec::Side side;
  std::vector<i64> ranks;               ///< of the holders; empty for a whole checkpoint
  std::optional<std::uint64_t> digest;  ///< from the manifest
  const checkpoint::TensorRecord* record = nullptr;  ///< from the manifest, or null
  std::vector<index::ValueShift> shifts;             ///< per holder; empty: plain values
};

/// One or more opened folders as one set of logical tensors. Whole checkpoints and shards look the
/// same: a checkpoint is a layout whose holders are (file, tensor) slots.
struct LogicalCheckpoint {
  std::vector<checkpoint::Checkpoint> parts;  ///< their own tensors have moved to `tensors`
  std::vector<exec::SurveyedFile> files;      ///< of all parts; Slot::file is an index
  std::vector<LogicalTensor> tensors;

  bool is_sharded() const { return parts.front().manifest.has_value(); }
  std::vector<TensorSpec> specs() const;
  std::vector<std::string> warnings() const;
  /// The config.json beside the weights; nothing when there is none. Throws kConfig.
  std::optional<mapping::ModelConfig> config() const;
};

/// Opens every location. Several must be outputs of one split: same mesh, same tensors, no rank in
/// two of them. Throws what open_checkpoint throws, and kManifestInvalid.
LogicalCheckpoint open_logical(const std::vector<std::string>& locations);

/// The same, for a run that writes what it reads: throws kManifestInvalid, too, for a manifest with
/// a tensor that has no digest and ought to have one (checkpoint::without_digest).
LogicalCheckpoint open_finished(const std::vector<std::string>& locations);

/// The same for folders that are open already. Requires K2 of a whole checkpoint; its files may be
/// unread. Throws kManifestInvalid.
LogicalCheckpoint join_parts(std::vector<checkpoint::Checkpoint> parts);

}  // namespace shardtool::api
