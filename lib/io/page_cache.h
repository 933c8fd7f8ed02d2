#pragma once

#include "lib/io/file.h"

namespace shardtool::io {

/// Drops the clean pages of a file from the page cache; the next buffered read waits for the
/// device. Other processes that map the file keep their pages.
void drop_from_page_cache(const File& file);

}  // namespace shardtool::io
