#pragma once

#include <string>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/checked.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/files/page_buffer.h"

namespace shardtool::exec {

/// XXH3-128 of a file's bytes [offset, offset + bytes), read through the page cache or past it,
/// whichever is better. Throws the errors of store::open_read and store::read_exact.
kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes);
/// Does it with a buffer of kBlockBufferBytes.
kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes,
                            const PageBuffer& buffer);
kernels::Hash128 hash_range(const std::string& path, i64 offset, i64 bytes);

}  // namespace shardtool::exec
