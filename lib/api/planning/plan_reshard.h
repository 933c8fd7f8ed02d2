#pragma once

#include <span>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// The two layouts of a reshard.
struct ReshardEnds {
  std::optional<MappingChoice> from;  ///< nullopt: the holders that the source has
  MappingChoice to;
};

/// The choice for a layout that is not named: the typed options over the source's mesh, or a preset
/// over one device.
MappingChoice base_choice(const LogicalCheckpoint& source, const MappingChoice& typed);

/// Returns both layouts; `from` and `to` of the options are those of at_layout. The reshard of
/// shards begins at their own layout unless `from`, a mapping or a mesh is given: then --axes alone
/// is that of the destination. Throws kUnknownName. Requires options.is_reshard().
ReshardEnds reshard_ends(const LogicalCheckpoint& source, const PlanOptions& options);

/// One end of a move: holders by tensor of the source (of a tensor that is not there: null), and
/// the number of devices; 0: storage.
struct MoveStart {
  std::vector<plan::Holders> holders;
  i64 devices = 0;
};

/// Returns the holders of each of `tensors` tensors; null for one that the mapping drops.
std::vector<plan::Holders> resolved_holders(const mapping::Resolution& resolution, size_t tensors);

/// Plans the bytes to move from holders of `tensors` to a layout of them. Throws kCoverage for a
/// tensor that is not there or whose parts are incomplete.
plan::ReshardPlan plan_move(std::span<const LogicalTensor> tensors, const MoveStart& start,
                            const mapping::Resolution& to, const PlanOptions& options);

/// Plans the bytes to move from the source's own holders (`from` is null) or from those of a
/// mapping. Throws kCoverage for a tensor that the source's mapping drops or whose parts are
/// incomplete.
plan::ReshardPlan plan_move(const LogicalCheckpoint& source, const AppliedMapping* from,
                            const AppliedMapping& to, const PlanOptions& options);

}  // namespace shardtool::api
