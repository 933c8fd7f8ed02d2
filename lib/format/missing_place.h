#pragma once

#include <string>

namespace shardtool::format {

/// Advice about a local path that does not exist: a similar name beside the first part that is
/// missing, or else that part and the folder that lacks it. Empty if only the last part is missing
/// and no name is similar, and for a place on an object store.
std::string advice_on_missing(const std::string& path);

}  // namespace shardtool::format
