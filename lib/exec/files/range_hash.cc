#include "lib/exec/files/range_hash.h"

#include "lib/exec/files/file_blocks.h"

namespace shardtool::exec {

kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes,
                            const PageBuffer& buffer) {
  kernels::Xxh3 hash;
  read_blocks(file, offset, bytes, buffer,
              [&](std::span<const std::byte> block) { hash.update(block); });
  return hash.value();
}

kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes) {
  return hash_range(file, offset, bytes, PageBuffer(kBlockBufferBytes));
}

kernels::Hash128 hash_range(const std::string& path, i64 offset, i64 bytes) {
  return hash_range(SourceFile(path), offset, bytes);
}

}  // namespace shardtool::exec
