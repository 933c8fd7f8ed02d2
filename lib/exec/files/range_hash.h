#pragma once

#include <string>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/checked.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::exec {

/// XXH3-128 of a file's bytes [offset, offset + bytes), read through the page cache or past it,
/// whichever is better. Throws the errors of store::open_read and store::read_exact.
kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes);
kernels::Hash128 hash_range(const std::string& path, i64 offset, i64 bytes);

}  // namespace shardtool::exec
