#pragma once

#include <string>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Keeps the tensors below `prefix`: those whose names begin with it and a dot, without both. Warns
/// of the number of others, by the first parts of their names. Throws kUsage for an output with a
/// manifest, and kFileMissing with the parts that exist if no tensor is below it.
void keep_below(Checkpoint& checkpoint, const std::string& prefix);

}  // namespace shardtool::format
