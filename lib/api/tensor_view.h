#pragma once

#include "lib/api/inspect.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::api {

/// Describes a tensor as stored in its file, without a layout.
InspectTensor describe_stored(const LogicalTensor& tensor, const LogicalCheckpoint& source);
/// Adds the mapping's decisions: rule, expressions, every rank's part.
void describe_resolved(InspectTensor& tensor, const mapping::ResolvedTensor& resolved);
/// Adds the file of every shard. Requires the shards of the output that `logical` is in.
void name_files(InspectTensor& tensor, const LogicalTensor& logical,
                const LogicalCheckpoint& source);
/// Adds the manifest's record.
void describe_recorded(InspectTensor& tensor, const LogicalTensor& logical);

}  // namespace shardtool::api
