#pragma once

#include <optional>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Requests for data that a split of the source to this layout sends to object stores; nullopt for
/// a source on this machine. Reads nothing. Ranks above the first 256 are not counted one by one.
std::optional<SourceReads> source_reads(const LogicalCheckpoint& source,
                                        const AppliedMapping& applied);

}  // namespace shardtool::api
