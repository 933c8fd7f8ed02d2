#include "shardtool/exec/range_hash.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::exec {
namespace {

constexpr i64 kBlockBytes = 1 << 20;

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

}  // namespace

std::string hash_range(const SourceFile& file, i64 offset, i64 bytes) {
  constexpr size_t kBufferBytes = kBlockBytes + 2 * kPageBytes;
  const std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBufferBytes)));
  if (!buffer) throw std::bad_alloc();
  kernels::Xxh3 hash;
  while (bytes > 0) {
    const i64 part = std::min(bytes, kBlockBytes);
    hash.update({file.read(buffer.get(), part, offset), static_cast<size_t>(part)});
    offset += part;
    bytes -= part;
  }
  return hash.hex();
}

std::string hash_range(const std::string& path, i64 offset, i64 bytes) {
  return hash_range(SourceFile(path), offset, bytes);
}

}  // namespace shardtool::exec
