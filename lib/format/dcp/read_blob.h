#pragma once

#include "kernels/xxh3/xxh3.h"
#include "lib/format/dcp/metadata.h"
#include "lib/store/reader.h"

namespace shardtool::format::dcp {

/// Finds the data of a chunk: returns its absolute offset in the file. The blob must be what
/// torch.save writes of one tensor with the chunk's shape and this dtype, row-major and without
/// other bytes in its storage. Adds all bytes around the data to `frame`. `name` is for messages.
/// Throws kMalformed, kUnsupported, kLimit.
i64 read_blob(const store::Reader& file, const std::string& name, Dtype dtype, const Chunk& chunk,
              kernels::Xxh3& frame);

}  // namespace shardtool::format::dcp
