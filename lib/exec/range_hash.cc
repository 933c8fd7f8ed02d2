#include "shardtool/exec/range_hash.h"

#include <algorithm>

#include "shardtool/exec/page_buffer.h"

namespace shardtool::exec {
namespace {

constexpr i64 kBlockBytes = 1 << 20;

}  // namespace

kernels::Hash128 hash_range(const SourceFile& file, i64 offset, i64 bytes) {
  const PageBuffer buffer(kBlockBytes + 2 * kPageBytes);
  kernels::Xxh3 hash;
  while (bytes > 0) {
    const i64 part = std::min(bytes, kBlockBytes);
    hash.update({file.read(buffer.data(), part, offset), static_cast<size_t>(part)});
    offset += part;
    bytes -= part;
  }
  return hash.value();
}

kernels::Hash128 hash_range(const std::string& path, i64 offset, i64 bytes) {
  return hash_range(SourceFile(path), offset, bytes);
}

}  // namespace shardtool::exec
