#include <algorithm>
#include <cerrno>

#include "lib/store/local/file.h"

namespace shardtool::store {
namespace {

constexpr i64 kSamples = 8;
constexpr i64 kLeastBetween = 32 << 10;  ///< bytes; the system reads ahead in larger steps

/// Reads the byte at `offset` unless that waits for the device. Returns an errno, 0 for success.
int read_resident_byte(int fd, i64 offset) {
  std::byte byte{};
  const iovec part{&byte, 1};
  return ::preadv2(fd, &part, 1, offset, RWF_NOWAIT) >= 0 ? 0 : errno;
}

}  // namespace

bool is_resident(const File& file, i64 offset, i64 length) {
  const i64 step = std::max(ceil_div(length, kSamples), kLeastBetween);
  for (i64 at = 0; at < length; at += step) {
    const int reason = read_resident_byte(file.fd(), offset + at);
    if (reason == EAGAIN) return false;
    if (reason != 0) return true;
  }
  return true;
}

}  // namespace shardtool::store
