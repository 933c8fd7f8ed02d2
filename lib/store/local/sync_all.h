#pragma once

#include <deque>

#include "lib/store/local/file.h"

namespace shardtool::store {

/// Syncs every file, several at a time. Throws the failure of the first file (in order) that
/// failed.
void sync_all(const std::deque<File>& files);

}  // namespace shardtool::store
