#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/checkpoint/manifest.h"
#include "lib/exec/shifted.h"
#include "lib/mesh/mesh.h"

namespace shardtool::api {

/// One way in which padding repeats elements (layout::Layout::fills), on the holders that have it.
struct Fill {
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<size_t> of;  ///< per holder: its number among the tensor's holders
};

/// One tensor of an output, and who will hold it.
struct TargetTensor {
  size_t source = 0;  ///< index into LogicalCheckpoint::tensors
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<i64> ranks;  ///< of the holders
  bool is_sharded = false;
  std::shared_ptr<const checkpoint::CutRecord> cut;     ///< shared like the holders
  std::shared_ptr<const std::vector<Fill>> fills = {};  ///< null: none
  std::vector<index::ValueShift> shifts = {};           ///< per holder; empty: plain values
};

/// The layout that a run writes. A merged checkpoint is the layout of a mesh of one device.
struct TargetLayout {
  mesh::Mesh mesh;
  bool is_whole = false;   ///< written under Hugging Face's names, with an index
  std::vector<i64> ranks;  ///< that are written, ascending
  std::vector<TargetTensor> tensors;
  std::vector<std::vector<std::string>> tied;
  std::vector<std::string> dropped;
  std::string mapping;                     ///< documents as the manifest stores them, or empty
  std::vector<std::string> mapping_names;  ///< of those that were named or chosen; merge: none
  std::vector<UnevenAxis> uneven;
  std::vector<std::string> warnings;
};

/// What a mapping makes of the source, for these ranks (empty: all). Throws kUsage for a rank that
/// the mesh does not have.
TargetLayout sharded_target(const LogicalCheckpoint& source, const AppliedMapping& applied,
                            const std::vector<i64>& ranks);

/// Everything whole, in one place.
TargetLayout whole_target(const LogicalCheckpoint& source);

/// The expression of every axis, for people.
std::vector<checkpoint::AxisRecord> axis_records(const layout::Layout& layout);

}  // namespace shardtool::api
