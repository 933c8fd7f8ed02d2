#pragma once

#include "lib/io/file.h"

namespace shardtool::io {

/// Drops what the page cache holds of a file and has been written out; the next buffered read waits
/// for the device. Other processes that have it mapped keep their pages.
void drop_from_page_cache(const File& file);

}  // namespace shardtool::io
