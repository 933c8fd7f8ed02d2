#pragma once

#include "lib/store/local/file.h"

namespace shardtool::store {

/// Drops the clean pages of a file from the page cache; the next buffered read waits for the
/// device. Other processes that map the file keep their pages.
void drop_from_page_cache(const File& file);

}  // namespace shardtool::store
