#include "lib/store/local/syscalls.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>

namespace shardtool::store {
namespace {

int real_openat(int folder, const char* path, int flags, mode_t mode) {
  return ::openat(folder, path, flags, mode);
}

int real_clone_range(int to, const file_clone_range* range) {
  return ::ioctl(to, FICLONERANGE, range);
}

int real_rename_exchange(const char* a, const char* b) {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

constexpr Syscalls kReal{
    .openat = real_openat,
    .close = ::close,
    .statx = ::statx,
    .preadv = ::preadv,
    .pwrite = ::pwrite,
    .fallocate = ::fallocate,
    .ftruncate = ::ftruncate,
    .clone_range = real_clone_range,
    .fsync = ::fsync,
    .mkdir = ::mkdir,
    .rename = ::rename,
    .rename_exchange = real_rename_exchange,
    .unlinkat = ::unlinkat,
    .statvfs = ::statvfs,
    .statfs = ::statfs,
    .faccessat = ::faccessat,
};

Syscalls& table() {
  static Syscalls in_use = kReal;
  return in_use;
}

}  // namespace

const Syscalls& syscalls() {
  return table();
}
const Syscalls& real_syscalls() {
  return kReal;
}

ScopedSyscalls::ScopedSyscalls(const Syscalls& replacement) : saved_(table()) {
  table() = replacement;
}
ScopedSyscalls::~ScopedSyscalls() {
  table() = saved_;
}

}  // namespace shardtool::store
