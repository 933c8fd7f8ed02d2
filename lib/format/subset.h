#pragma once

#include <string>
#include <utility>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Parts of a location FOLDER#PREFIX. Without a "#", or if a file of the whole name exists, the
/// prefix is empty.
std::pair<std::string, std::string> split_location(const std::string& location);

/// Keeps the tensors below `prefix`: those whose names begin with it and a dot, without both. Warns
/// of the number of others, by the first parts of their names. Throws kUsage for an output with a
/// manifest, and kFileMissing with the parts that exist if no tensor is below it.
void keep_below(Checkpoint& checkpoint, const std::string& prefix);

}  // namespace shardtool::format
