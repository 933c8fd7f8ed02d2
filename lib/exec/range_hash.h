#pragma once

#include <string>

#include "shardtool/base/checked.h"
#include "shardtool/exec/data_file.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::exec {

/// The XXH3-128 of a file's bytes [offset, offset + bytes), read through the page cache or past it,
/// whichever is better. Throws what io::open_read and io::read_exact throw.
kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes);
kernels::Hash128 hash_range(const std::string& path, i64 offset, i64 bytes);

}  // namespace shardtool::exec
