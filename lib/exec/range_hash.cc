#include "shardtool/exec/range_hash.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "shardtool/io/file.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::exec {

std::string hash_range(const std::string& path, i64 offset, i64 bytes) {
  const io::File file = io::open_read(path);
  std::vector<std::byte> buffer(1 << 20);
  kernels::Xxh3 hash;
  while (bytes > 0) {
    const auto part = std::span(buffer).first(
        static_cast<size_t>(std::min<i64>(bytes, static_cast<i64>(buffer.size()))));
    io::read_exact(file, part, offset);
    hash.update(part);
    offset += static_cast<i64>(part.size());
    bytes -= static_cast<i64>(part.size());
  }
  return hash.hex();
}

}  // namespace shardtool::exec
