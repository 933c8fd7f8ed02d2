#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/exec/shifted.h"
#include "lib/format/manifest/manifest.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mapping/resolve/output_tensors.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

/// One copy of elements into padding (layout::Layout::fills), with the holders that have it.
struct Fill {
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<size_t> of;  ///< per holder: its index among the tensor's holders
};

/// One tensor of an output, with its holders.
struct TargetTensor {
  size_t source = 0;  ///< index into LogicalCheckpoint::tensors
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<i64> ranks;  ///< of the holders: whose files they are in
  bool is_sharded = false;
  std::shared_ptr<const format::CutRecord> cut;         ///< shared like the holders
  std::shared_ptr<const std::vector<Fill>> fills = {};  ///< null: no fills
  std::vector<index::ValueShift> shifts = {};           ///< per holder; empty: plain values
  /// Name of the output tensor that holds the shards; empty: the tensor's own.
  std::shared_ptr<const std::string> stored_as = {};
  /// The same per holder, if their names differ; else empty.
  std::vector<std::shared_ptr<const std::string>> stored_on = {};
};

/// The layout that a run writes. A merged checkpoint is the layout of a mesh of one device.
struct TargetLayout {
  mesh::Mesh mesh;
  bool is_whole = false;             ///< written with Hugging Face's file names and an index
  std::string layout{kPlainLayout};  ///< label of the engine's layout, or plain
  std::optional<layouts::FileNames> engine_files;  ///< of the layout; absent: plain names
  layouts::StoredForm form;                        ///< with chunks, see store_in_chunks
  /// Tensors as the files hold them; null: every tensor by itself. Their contents index
  /// LogicalCheckpoint::tensors.
  std::shared_ptr<const std::vector<mapping::OutputTensor>> output;
  /// Tensors that are not written because they must be equal to others: indices into
  /// LogicalCheckpoint::tensors. `dropped` names them, too.
  std::vector<mapping::LeftOut> left_out;
  std::vector<i64> ranks;  ///< ranks to write, ascending
  std::vector<TargetTensor> tensors;
  std::vector<std::vector<std::string>> tied;
  std::vector<std::string> dropped;
  std::vector<std::string> elsewhere;      ///< see format::Manifest
  std::string axes;                        ///< see format::Manifest
  bool allows_empty_shards = false;        ///< see format::Manifest
  std::string config;                      ///< config.json to write; empty: the source's
  std::string mapping;                     ///< documents as stored in the manifest, or empty
  std::vector<std::string> mapping_names;  ///< chosen documents; empty for merge
  std::vector<UnevenAxis> uneven;
  std::optional<NotBoxes> not_boxes;  ///< the first tensor by name that is not cut into boxes
  std::vector<std::string> warnings;

  bool leaves_ranks_out() const { return !is_whole && std::ssize(ranks) < mesh.size(); }
};

/// Applies a mapping to the source for these ranks (empty: all). Throws kUsage for a rank outside
/// of the mesh.
TargetLayout sharded_target(const LogicalCheckpoint& source, const AppliedMapping& applied,
                            const std::vector<i64>& ranks);

/// Returns the rows of a unit of the tensors that the output stores interleaved, by their index.
std::unordered_map<size_t, i64> interleaved_units(std::span<const mapping::OutputTensor> output);

/// Returns the holders with the rows of every unit interleaved (index/interleave.h). Throws
/// kStrategy if a cut is inside a unit.
std::shared_ptr<const index::HolderSet> interleaved_holders(const index::HolderSet& holders,
                                                            i64 unit, const std::string& name);

/// Returns the layout of the whole checkpoint on one device, in the files of a layout without
/// models, or, without one, in the plain ones. Throws kUsage for a layout with models.
TargetLayout whole_target(const LogicalCheckpoint& source,
                          const layouts::EngineLayout* layout = nullptr);

/// Returns the expression of every axis, for people.
std::vector<format::AxisRecord> axis_records(const mapping::ResolvedTensor& tensor);

}  // namespace shardtool::api
