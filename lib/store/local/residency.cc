#include <algorithm>
#include <cerrno>

#include "lib/store/local/file.h"

namespace shardtool::store {
namespace {

constexpr i64 kSamples = 8;

/// True if the byte at `offset` can be read without waiting for the device.
bool is_byte_resident(int fd, i64 offset) {
  std::byte byte{};
  const iovec part{&byte, 1};
  return ::preadv2(fd, &part, 1, offset, RWF_NOWAIT) >= 0 || errno != EAGAIN;
}

}  // namespace

bool is_resident(const File& file, i64 offset, i64 length) {
  const i64 step = std::max<i64>(ceil_div(length, kSamples), 1);
  for (i64 at = 0; at < length; at += step) {
    if (!is_byte_resident(file.fd(), offset + at)) return false;
  }
  return true;
}

}  // namespace shardtool::store
