#include "tests/support/played_device.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <set>

namespace shardtool::testing {
namespace {

constexpr std::uintptr_t kPageBytes = 4096;
constexpr size_t kSector = 512;

/// Global, because the table holds plain functions.
struct Device {
  store::Syscalls below;
  std::uintptr_t memory_alignment = kPageBytes;
  bool announces = true;
  std::mutex mutex;
  std::set<int> direct;  ///< descriptors opened for direct I/O
  std::atomic<int> refused = 0;
  std::atomic<int> reads = 0;
  std::atomic<int> reads_inside_pages = 0;
};
Device device;

bool is_direct(int fd) {
  const std::lock_guard lock(device.mutex);
  return device.direct.contains(fd);
}

bool takes(const void* memory, size_t size, off_t offset) {
  const bool taken = reinterpret_cast<std::uintptr_t>(memory) % device.memory_alignment == 0 &&
                     size % kSector == 0 && static_cast<size_t>(offset) % kSector == 0;
  if (!taken) {
    ++device.refused;
    errno = EINVAL;
  }
  return taken;
}

int played_openat(int folder, const char* path, int flags, mode_t mode) {
  const int fd = device.below.openat(folder, path, flags & ~O_DIRECT, mode);
  if (fd < 0 || (flags & O_DIRECT) == 0) return fd;
  const std::lock_guard lock(device.mutex);
  device.direct.insert(fd);
  return fd;
}

int played_close(int fd) {
  const std::lock_guard lock(device.mutex);
  device.direct.erase(fd);
  return device.below.close(fd);
}

int played_statx(int folder, const char* path, int flags, unsigned mask, struct statx* found) {
  const int result = device.below.statx(folder, path, flags, mask, found);
  if (result != 0) return result;
  found->stx_mask &= ~unsigned{STATX_DIOALIGN};
  if (!device.announces) return 0;
  found->stx_mask |= STATX_DIOALIGN;
  found->stx_dio_mem_align = static_cast<std::uint32_t>(device.memory_alignment);
  found->stx_dio_offset_align = kSector;
  return 0;
}

ssize_t played_preadv(int fd, const iovec* parts, int count, off_t offset) {
  if (!is_direct(fd)) return device.below.preadv(fd, parts, count, offset);
  for (int i = 0; i < count; ++i) {
    ++device.reads;
    if (!takes(parts[i].iov_base, parts[i].iov_len, offset)) return -1;
    if (reinterpret_cast<std::uintptr_t>(parts[i].iov_base) % kPageBytes != 0) {
      ++device.reads_inside_pages;
    }
  }
  return device.below.preadv(fd, parts, count, offset);
}

ssize_t played_pwrite(int fd, const void* from, size_t size, off_t offset) {
  if (is_direct(fd) && !takes(from, size, offset)) return -1;
  return device.below.pwrite(fd, from, size, offset);
}

/// Returns the table of a new device on top of the current one.
store::Syscalls played_table(i64 memory_alignment, bool announces) {
  store::Syscalls table = device.below = store::syscalls();
  device.memory_alignment = static_cast<std::uintptr_t>(memory_alignment);
  device.announces = announces;
  device.direct.clear();
  device.refused = device.reads = device.reads_inside_pages = 0;
  table.openat = played_openat;
  table.close = played_close;
  table.statx = played_statx;
  table.preadv = played_preadv;
  table.pwrite = played_pwrite;
  return table;
}

}  // namespace

PlayedDevice::PlayedDevice(i64 memory_alignment, Announces announces)
    : scope_(played_table(memory_alignment, announces == Announces::kItsAlignment)) {}

int PlayedDevice::refused() const {
  return device.refused;
}
int PlayedDevice::reads() const {
  return device.reads;
}
int PlayedDevice::reads_inside_pages() const {
  return device.reads_inside_pages;
}

}  // namespace shardtool::testing
