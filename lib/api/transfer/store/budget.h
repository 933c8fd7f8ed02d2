#pragma once

#include "lib/base/checked.h"
#include "lib/exec/resources.h"

namespace shardtool::api {

/// Bytes of parts of an output on a store that may wait for the rest of theirs: half of the memory.
/// The other half is for reading.
i64 memory_of_parts(const exec::Resources& resources);

/// Resources of the moves of a run to a store; `reads_store` tells if its source is on one, too.
exec::Resources resources_of_moves(const exec::Resources& resources, bool reads_store);

/// Part size at which a part of every file and one per thread fit the memory, if that is possible.
i64 part_bytes_for(size_t files, const exec::Resources& resources);

}  // namespace shardtool::api
