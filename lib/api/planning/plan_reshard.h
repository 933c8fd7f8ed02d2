#pragma once

#include "lib/api/mapping_choice.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/logical_checkpoint.h"

namespace shardtool::api {

/// The two layouts of a reshard, as they were asked for.
struct ReshardEnds {
  std::optional<MappingChoice> from;  ///< nothing: the holders that the source has
  MappingChoice to;
};

/// The choice of a layout that nobody names: what was typed, over the mesh that the source
/// has; a preset without a mesh over one device.
MappingChoice base_choice(const LogicalCheckpoint& source, const MappingChoice& typed);

/// Where a reshard begins and ends. `from` and `to` name an entry of the mapping's "layouts", or
/// (with a slash, or ending in .json) a mapping file. Throws kUnknownName. Requires
/// options.is_reshard().
ReshardEnds reshard_ends(const LogicalCheckpoint& source, const PlanOptions& options);

/// What moves from the source's own holders (`from` is null) or those of a mapping. Throws
/// kCoverage for a tensor that the source's mapping drops, or whose parts are incomplete.
plan::ReshardPlan plan_move(const LogicalCheckpoint& source, const AppliedMapping* from,
                            const AppliedMapping& to, const PlanOptions& options);

}  // namespace shardtool::api
