#pragma once

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

/// Plans the bytes to move from the source's own holders (`from` is null) or from those of a
/// mapping. Throws kCoverage for a tensor that the source's mapping drops or whose parts are
/// incomplete.
plan::ReshardPlan plan_move(const LogicalCheckpoint& source, const AppliedMapping* from,
                            const AppliedMapping& to, const PlanOptions& options);

}  // namespace shardtool::api
