#include "shardtool/exec/range_hash.h"

#include "shardtool/exec/file_blocks.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::exec {

std::string hash_range(const SourceFile& file, i64 offset, i64 bytes) {
  const PageBuffer buffer(kBlockBufferBytes);
  kernels::Xxh3 hash;
  read_blocks(file, offset, bytes, buffer,
              [&](std::span<const std::byte> block) { hash.update(block); });
  return hash.hex();
}

std::string hash_range(const std::string& path, i64 offset, i64 bytes) {
  return hash_range(SourceFile(path), offset, bytes);
}

}  // namespace shardtool::exec
