#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace shardtool::store {

/// Builds "cannot <action>: <system's message for this errno>", at the path. kNoSpace when the
/// space, the quota or the largest file size is used up, kLimit when memory or descriptors are,
/// else kWriteFailed.
Error write_failure(std::string_view action, const std::string& path, int error_number);
/// Same for inputs: kFileMissing when there is no such file, kLimit as above, else kUnreadable.
Error read_failure(std::string_view action, const std::string& path, int error_number);

}  // namespace shardtool::store
